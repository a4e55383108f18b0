"""The rate limit: how many requests an instance may send in a second before it gets 429.

Every request counts, also one that is refused for another reason. Seconds are those of the
monotonic clock, and each process counts for itself.
"""

import time

from fairwarning.engine.scope_view import Member
from fairwarning.metadata.responses import TOO_MANY_REQUESTS, VaryingHeaders, head
from fairwarning.metadata.settings import EndpointRules

REQUESTS_PER_SECOND = 5
"""The limit of a real fleet, unless the operator sets another. Azure documents this number."""


class RateLimit:
    """Counts the requests of each instance in the fields `second` and `allowance` of its member."""

    def __init__(self, rules: EndpointRules, varying: VaryingHeaders) -> None:
        limit = rules.requests_per_second_max
        self.per_second = REQUESTS_PER_SECOND if limit is None else limit
        """The limit in real fleets; 0: none."""
        self.per_second_in_test_fleets = limit or 0
        self._varying = varying
        # Made once, like the documents: a flood of refusals must not cost more than its polls.
        self._refusals = [_refusal(closes=closes) for closes in (False, True)]

    def refuse(self, member: Member, closes: bool) -> bytes | None:
        """Count a request. Return the response 429 if the instance has used up this second."""
        limit = self.per_second_in_test_fleets if member.view.is_test else self.per_second
        if not limit:
            return None
        second = int(time.monotonic())
        if member.second != second:
            member.second, member.allowance = second, limit
        if member.allowance:
            member.allowance -= 1
            return None
        start, end = self._refusals[closes]
        return start + self._varying.next() + end


def _refusal(*, closes: bool) -> tuple[bytes, bytes]:
    response = TOO_MANY_REQUESTS
    start = head(response.status, len(response.body), headers=response.headers, closes=closes)
    return start, b"\r\n\r\n" + response.body
