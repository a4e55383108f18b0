"""Answers to polls from memory, as ready bytes. Both the fast and the parsed path end here.

That is why they cannot differ: recognising a poll by its bytes only saves the parsing.
Identity, rate limit and activation are looked at for every request.
"""

import re
from collections.abc import Callable, Iterator

from fairwarning.core.model import EventId
from fairwarning.engine.scope_view import Member, View
from fairwarning.metadata.rate_limit import RateLimit
from fairwarning.metadata.requests import Ask
from fairwarning.metadata.responses import Stamp, head

_OK, _NOT_MODIFIED = 200, 304
_TAG = re.compile(r"([0-9]{1,18})-([0-9a-f]{1,15})(?:-([0-9a-f]{8}))?")
"""The incarnation, the activation and the content in a tag (`core/document.py`)."""


class Polls:
    """Answers polls from the views in memory."""

    def __init__(self, rate_limit: RateLimit, stamp: Stamp) -> None:
        self.stamp = stamp
        self.on_sight: Callable[[Member, tuple[EventId, ...]], None] = lambda _, __: None
        """Called with the events that an instance is the first of its scope to be shown."""
        self._rate_limit = rate_limit
        # Copied, so that a poll without a limit costs no call.
        self._limit = rate_limit.per_second
        self._test_limit = rate_limit.per_second_in_test_fleets

    def ready(self, ask: Ask, member: Member, closes: bool) -> bytes | None:
        """Return the whole response; None if it takes longer than a look into memory.

        That is so if the scope is not activated, if the caller is to wait, or if it may have a
        newer document than this node; only then has the request not been counted yet.
        """
        view = member.view
        if ask.tag:
            if is_behind(ask, view):
                return None
            refused = self._rate_limit.refuse(member, closes)
            return self.answer(ask, member, closes) if refused is None else refused
        if self._test_limit if view.is_test else self._limit:
            refused = self._rate_limit.refuse(member, closes)
            return self.answer(ask, member, closes) if refused is None else refused
        form = view.forms.get(ask.form + closes)
        if form is None:
            if view.activated_ms is None:
                return None
            form = self._make_form(ask, member, closes)
        view.is_asked = True
        member.polls += 1
        member.agent = ask.agent
        stamp = self.stamp
        last = next(stamp.lasts, None) or stamp.begin()
        return b"".join((form[0], stamp.block, last, form[1]))

    def answer(self, ask: Ask, member: Member, closes: bool) -> bytes | None:
        """The same once the rate limit has been looked at."""
        view = member.view
        if view.activated_ms is None:
            return None
        view.is_asked = True
        if ask.tag and matches(ask.tag, view.tag):
            member.polls += 1
            member.agent = ask.agent
            return None if ask.wait_s else self.not_modified(view, closes)
        return self.document(ask, member, closes)

    def document(self, ask: Ask, member: Member, closes: bool) -> bytes:
        form = member.view.forms.get(ask.form + closes)
        if form is None:
            form = self._make_form(ask, member, closes)
        member.polls += 1
        member.agent = ask.agent
        return form[0] + self.stamp.next() + form[1]

    def _make_form(self, ask: Ask, member: Member, closes: bool) -> tuple[bytes, bytes]:
        """Only after a change, so whatever is new in the document is seen here first."""
        assert ask.version is not None
        view = member.view
        body = view.document(ask.version)
        start = head(_OK, len(body), headers={"ETag": view.tag}, closes=closes)
        form = view.forms[ask.form + closes] = (start, b"\r\n\r\n" + body)
        if view.unseen and (seen := view.take_unseen(ask.version)):
            self.on_sight(member, seen)
        return form

    def not_modified(self, view: View, closes: bool) -> bytes:
        start = head(_NOT_MODIFIED, 0, headers={"ETag": view.tag}, closes=closes)
        return start + self.stamp.next() + b"\r\n\r\n"


def is_behind(ask: Ask, view: View) -> bool:
    """Return whether the caller may have seen a newer document of an activated scope than this."""
    if ask.tag == view.tag or view.activated_ms is None:
        return False
    return is_ahead(ask.tag, view) and not matches(ask.tag, view.tag)


def matches(tags: str, tag: str) -> bool:
    """If-None-Match with quotes, without, weak, several, or `*`."""
    if tags == tag:
        return True
    bare = tag.strip('"')
    return any(each in (bare, "*") for each in _bare(tags))


def is_ahead(tags: str, view: View) -> bool:
    """Whether a tag names a document that is newer than the view's, or another of its number."""
    place = view.activated_ms or 0, view.incarnation
    return any((activation, number) >= place for number, activation, _ in _parts(tags))


def proves_loss(tags: str, view: View) -> bool:
    """Whether a tag names a document of this very activation that the store does not know.

    The view must be as new as the store. A tag may be made up; the caller bounds what that costs.
    """
    _, _, content = view.tag.strip('"').split("-")
    return any(
        activation == view.activated_ms
        and (number > view.incarnation or (number == view.incarnation and other != content))
        for number, activation, other in _parts(tags)
        if other
    )


def _parts(tags: str) -> Iterator[tuple[int, int, str | None]]:
    """The incarnation, the activation and the content of each tag that may be one of ours."""
    for found in map(_TAG.fullmatch, _bare(tags)):
        if found is not None:
            yield int(found[1]), int(found[2], 16), found[3]


def _bare(tags: str) -> Iterator[str]:
    return (each.strip().removeprefix("W/").strip('"') for each in tags.split(","))
