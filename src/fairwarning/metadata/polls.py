"""Answers to polls from memory, as ready bytes. Both the fast and the parsed path end here.

That is why they cannot differ: recognising a poll by its bytes only saves the parsing.
Identity, rate limit and activation are looked at for every request.
"""

import time
from collections.abc import Callable

from fairwarning.core.model import EventId
from fairwarning.engine.views import Member, View
from fairwarning.metadata.answers import TOO_MANY_REQUESTS, head, to_bytes
from fairwarning.metadata.asks import Ask
from fairwarning.metadata.limits import EndpointRules
from fairwarning.metadata.stamp import Stamp

REQUESTS_PER_SECOND = 5
_OK, _NOT_MODIFIED = 200, 304


class Polls:
    def __init__(self, rules: EndpointRules, stamp: Stamp) -> None:
        self.stamp = stamp
        self.on_sight: Callable[[Member, tuple[EventId, ...]], None] = lambda _, __: None
        """Hears of events that an instance is the first to be shown."""
        limit = rules.requests_per_second_max
        self._limit = REQUESTS_PER_SECOND if limit is None else limit
        self._test_limit = limit or 0

    def throttle(self, member: Member, *, closes: bool) -> bytes | None:
        """The answer 429 if the instance has used up this second."""
        limit = self._test_limit if member.view.is_test else self._limit
        if not limit:
            return None
        second = int(time.monotonic())
        if member.second != second:
            member.second, member.allowance = second, limit
        if member.allowance:
            member.allowance -= 1
            return None
        return to_bytes(TOO_MANY_REQUESTS, self.stamp, closes=closes)

    def ready(self, ask: Ask, member: Member, closes: bool) -> bytes | None:
        """The whole response; None if the scope is not activated, or the caller is to wait."""
        view = member.view
        if ask.tag or (self._test_limit if view.is_test else self._limit):
            refused = self.throttle(member, closes=closes)
            return self.answer(ask, member, closes=closes) if refused is None else refused
        form = view.forms.get(ask.form + closes)
        if form is None:
            if view.activated_ms is None:
                return None
            form = self._make_form(ask, member, closes=closes)
        view.is_asked = True
        member.polls += 1
        member.agent = ask.agent
        stamp = self.stamp
        last = next(stamp.lasts, None) or stamp.begin()
        return b"".join((form[0], stamp.block, last, form[1]))

    def answer(self, ask: Ask, member: Member, *, closes: bool) -> bytes | None:
        """The same once the rate limit has been looked at."""
        view = member.view
        if view.activated_ms is None:
            return None
        view.is_asked = True
        if ask.tag and matches(ask.tag, tag_of(view)):
            member.polls += 1
            member.agent = ask.agent
            return None if ask.wait_s else self.not_modified(view, closes=closes)
        return self.document(ask, member, closes=closes)

    def document(self, ask: Ask, member: Member, *, closes: bool) -> bytes:
        form = member.view.forms.get(ask.form + closes)
        if form is None:
            form = self._make_form(ask, member, closes=closes)
        member.polls += 1
        member.agent = ask.agent
        return form[0] + self.stamp.next() + form[1]

    def _make_form(self, ask: Ask, member: Member, *, closes: bool) -> tuple[bytes, bytes]:
        """Only after a change, so whatever is new in the document is seen here first."""
        assert ask.version is not None
        view = member.view
        body = view.document(ask.version)
        start = head(_OK, len(body), headers={"ETag": tag_of(view)}, closes=closes)
        form = view.forms[ask.form + closes] = (start, b"\r\n\r\n" + body)
        if view.unseen:
            self.on_sight(member, view.take_unseen())
        return form

    def not_modified(self, view: View, *, closes: bool) -> bytes:
        start = head(_NOT_MODIFIED, 0, headers={"ETag": tag_of(view)}, closes=closes)
        return start + self.stamp.next() + b"\r\n\r\n"


def tag_of(view: View) -> str:
    """Two activations count from 1 alike, so the tag names the activation too."""
    return f'"{view.incarnation}-{view.activated_ms or 0:x}"'


def matches(tags: str, tag: str) -> bool:
    """If-None-Match with quotes, without, weak, several, or `*`."""
    bare = tag.strip('"')
    given = (each.strip().removeprefix("W/").strip('"') for each in tags.split(","))
    return any(each in (bare, "*") for each in given)
