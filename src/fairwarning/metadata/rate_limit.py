"""The rate limit sets how many requests an instance may send in a second before it gets 429.

Every request counts, even if it is refused for another reason. The seconds are those of the
monotonic clock, and each process counts separately.
"""

import time

from fairwarning.engine.scope_view import Member
from fairwarning.metadata.responses import TOO_MANY_REQUESTS, VaryingHeaders, head
from fairwarning.metadata.settings import EndpointRules

REQUESTS_PER_SECOND = 5
"""The default limit of a real fleet. Azure documents this number."""


class RateLimit:
    """Counts the requests of each instance in the fields `second` and `allowance` of its member."""

    def __init__(self, rules: EndpointRules, varying: VaryingHeaders) -> None:
        limit = rules.requests_per_second_max
        self.per_second = REQUESTS_PER_SECOND if limit is None else limit
        """The limit in real fleets. 0 means no limit."""
        self.per_second_in_test_fleets = limit or 0
        self._varying = varying
        # They are made once, so that a refusal does not cost more than a poll.
        self._refusals = [_refusal(closes=closes) for closes in (False, True)]

    def refuse(self, member: Member, closes: bool) -> bytes | None:
        """Count a request. Return a 429 response if this second has had too many, else None."""
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
