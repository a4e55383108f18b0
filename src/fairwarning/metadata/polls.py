"""Answers polls from memory with ready bytes, recognises known polls, and holds long-polls.

Polls that are known by their bytes and polls that were parsed are both answered here, so their
responses can't differ. The rate limit and the activation are checked for every poll.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from fairwarning.core.model import EventId
from fairwarning.engine.scope_view import Member, View
from fairwarning.metadata.rate_limit import RateLimit
from fairwarning.metadata.requests import Request
from fairwarning.metadata.responses import VaryingHeaders, head
from fairwarning.metadata.settings import REMEMBERED_POLLS_MAX

if TYPE_CHECKING:
    from fairwarning.metadata.connection import Connection


_OK, _NOT_MODIFIED = 200, 304
_TAG = re.compile(r"([0-9]{1,18})-([0-9a-f]{1,15})(?:-([0-9a-f]{8}))?")
"""A tag has the incarnation, the activation and a hash of the content (`core/document.py`)."""


class Polls:
    """Answers polls from the views in memory."""

    def __init__(self, rate_limit: RateLimit, varying: VaryingHeaders) -> None:
        self.varying = varying
        self.on_sight: Callable[[Member, tuple[EventId, ...]], None] = lambda _, __: None
        """Called with an instance and the events that are shown for the first time in its scope."""
        self._rate_limit = rate_limit
        # These are copied, so that a poll without a limit needs no call.
        self._limit = rate_limit.per_second
        self._test_limit = rate_limit.per_second_in_test_fleets

    def ready(self, request: Request, member: Member, closes: bool) -> bytes | None:
        """Return the whole response. It is None if the poll can't be answered from memory now.

        It is None if the scope is not activated, if the poll must be held, or if the caller may
        have a newer document than this node. In this last case, the rate limit has not counted the
        request yet.
        """
        view = member.view
        if request.tag:
            if is_behind(request, view):
                return None
            refused = self._rate_limit.refuse(member, closes)
            return self.answer(request, member, closes) if refused is None else refused
        if self._test_limit if view.is_test else self._limit:
            refused = self._rate_limit.refuse(member, closes)
            return self.answer(request, member, closes) if refused is None else refused
        form = view.forms.get(request.form + closes)
        if form is None:
            if view.activated_ms is None:
                return None
            form = self._make_form(request, member, closes)
        view.is_asked = True
        member.polls += 1
        member.agent = request.agent
        varying = self.varying
        last = next(varying.lasts, None) or varying.begin()
        return b"".join((form[0], varying.block, last, form[1]))

    def answer(self, request: Request, member: Member, closes: bool) -> bytes | None:
        """Return the response to a poll that the rate limit has counted. It is None if the scope is
        not activated or if the poll must be held.
        """
        view = member.view
        if view.activated_ms is None:
            return None
        view.is_asked = True
        if request.tag and matches(request.tag, view.tag):
            member.polls += 1
            member.agent = request.agent
            return None if request.wait_s else self.not_modified(view, closes)
        return self.document(request, member, closes)

    def document(self, request: Request, member: Member, closes: bool) -> bytes:
        """Return the response with the document of the scope, which must be activated."""
        form = member.view.forms.get(request.form + closes)
        if form is None:
            form = self._make_form(request, member, closes)
        member.polls += 1
        member.agent = request.agent
        return form[0] + self.varying.next() + form[1]

    def _make_form(self, request: Request, member: Member, closes: bool) -> tuple[bytes, bytes]:
        """Make the constant parts of the response and keep them in the view until the next change.
        This happens once after each change, so new events are reported as seen here.
        """
        assert request.version is not None
        view = member.view
        body = view.document(request.version)
        start = head(_OK, len(body), headers={"ETag": view.tag}, closes=closes)
        form = view.forms[request.form + closes] = (start, b"\r\n\r\n" + body)
        if view.unseen and (seen := view.take_unseen(request.version)):
            self.on_sight(member, seen)
        return form

    def not_modified(self, view: View, closes: bool) -> bytes:
        """Return the response 304."""
        start = head(_NOT_MODIFIED, 0, headers={"ETag": view.tag}, closes=closes)
        return start + self.varying.next() + b"\r\n\r\n"


def is_behind(request: Request, view: View) -> bool:
    """Return whether the caller may have a newer document than this view of an activated scope."""
    if request.tag == view.tag or view.activated_ms is None:
        return False
    return is_ahead(request.tag, view) and not matches(request.tag, view.tag)


def matches(tags: str, tag: str) -> bool:
    """Return whether If-None-Match (`tags`) contains the tag. `tags` may be `*` or a list, and each
    tag may be weak and may have quotes or not.
    """
    if tags == tag:
        return True
    bare = tag.strip('"')
    return any(each in (bare, "*") for each in _bare(tags))


def is_ahead(tags: str, view: View) -> bool:
    """Return whether one of the tags has the incarnation of the view's document, or a later one."""
    place = view.activated_ms or 0, view.incarnation
    return any((activation, number) >= place for number, activation, _ in _parts(tags))


def proves_loss(tags: str, view: View) -> bool:
    """Return whether a tag names a document of this activation that the store does not have.

    The view must be as new as the store. A client can forge a tag, so a caller must limit how often
    it acts on the result.
    """
    _, _, content = view.tag.strip('"').split("-")
    return any(
        activation == view.activated_ms
        and (number > view.incarnation or (number == view.incarnation and other != content))
        for number, activation, other in _parts(tags)
        if other
    )


def _parts(tags: str) -> Iterator[tuple[int, int, str | None]]:
    """Yield the incarnation, the activation and the content hash of each tag of our form."""
    for found in map(_TAG.fullmatch, _bare(tags)):
        if found is not None:
            yield int(found[1]), int(found[2], 16), found[3]


def _bare(tags: str) -> Iterator[str]:
    return (each.strip().removeprefix("W/").strip('"') for each in tags.split(","))


class KnownPolls:
    """The polls that have been parsed before, by their bytes: equal bytes need no parsing.

    A poller sends the same bytes for hours, and most pollers of a fleet are the same program. The
    meaning of a request depends only on its bytes and the rules (`requests.py`). The sender and its
    permission are still checked for every request.

    Listeners and connections read the fields of this class directly, because a method call for each
    poll would cost more than the lookup.
    """

    def __init__(self) -> None:
        self.by_bytes: dict[bytes, tuple[Request, bool]] = {}
        """For the bytes of a poll, the parsed request and whether it closes its connection."""
        self.has_loopback = False
        """Whether a listener is on loopback. There, requests of foreign web pages are refused."""
        self._closing: dict[bytes, Request] = {}
        """Polls that close their connection, and that need no check except the source address."""
        self.last_bytes = b""
        """The bytes of the last poll that `find_closing` found. The next one is mostly equal."""
        self.last_request: Request | None = None

    def remember(self, raw: bytes, request: Request, *, closes: bool) -> None:
        """Remember what these bytes mean. They must be exactly one whole poll."""
        self.by_bytes[raw] = (request, closes)
        may_be_refused = request.is_foreign and self.has_loopback
        if closes and request.is_plain and not request.wait_s and not may_be_refused:
            self._closing[raw] = request

    @property
    def is_full(self) -> bool:
        return len(self.by_bytes) >= REMEMBERED_POLLS_MAX

    def find_closing(self, raw: bytes) -> Request | None:
        """Return the poll that these bytes are, if it is known and closes its connection."""
        request = self._closing.get(raw)
        if request is not None:
            self.last_bytes, self.last_request = raw, request
        return request

    def clear(self) -> None:
        """Forget all polls. Each real poller is known again after one parse."""
        self.by_bytes.clear()
        self._closing.clear()
        self.last_bytes, self.last_request = b"", None


class HeldPoll(Struct, eq=False):
    """A poll (long-poll) that waits for the next change of its document, for at most its `wait`.

    It has no task of its own. The scope's view calls it when the document changes, and the event
    loop calls it when the time is over. In both cases, it calls its connection, which answers it.
    It is a Struct, because a dataclass would take longer to create.
    """

    connection: "Connection"
    request: Request
    member: Member
    """The instance that sent the poll."""
    closes: bool
    """Whether the connection ends with the response."""
    tag: str
    """The tag of the document that the caller already has."""
    timer: asyncio.TimerHandle | None = None
    is_over: bool = False

    def cancel(self) -> None:
        """Stop waiting. The connection is not told and must answer the poll itself."""
        self.is_over = True
        if self.timer is not None:
            self.timer.cancel()
        self.member.view.forget(self._on_change)

    def _on_change(self) -> None:
        if self.is_over:
            # A change calls a list of polls, and an earlier one in it may have ended this one.
            return
        member = self.member
        view = member.view
        is_same_caller = self.connection.find_caller(self.request) is member
        if is_same_caller and view.tag == self.tag:
            # Another instance of the scope was removed or moved; this document is the same.
            view.listen(self._on_change)
            return
        self.cancel()
        self.connection.end_held_poll(self, True, is_same_caller)

    def _time_out(self) -> None:
        self.cancel()
        self.connection.end_held_poll(
            self, False, self.connection.find_caller(self.request) is self.member
        )


def hold(connection: "Connection", request: Request, member: Member, closes: bool) -> HeldPoll:
    """Hold a poll whose caller already has the present document, and return it."""
    view = member.view
    held = HeldPoll(connection, request, member, closes, view.tag)
    held.timer = asyncio.get_running_loop().call_later(request.wait_s, held._time_out)
    view.listen(held._on_change)
    return held
