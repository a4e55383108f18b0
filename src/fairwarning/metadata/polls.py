"""Polls are answered from memory with ready bytes, and tags of documents are compared.

Both ways of a poll, known by its bytes or parsed, end here, so their responses can't differ.
Identity, rate limit and activation are checked for every request.
"""

import re
from collections.abc import Callable, Iterator

from fairwarning.core.model import EventId
from fairwarning.engine.scope_view import Member, View
from fairwarning.metadata.rate_limit import RateLimit
from fairwarning.metadata.requests import Request
from fairwarning.metadata.responses import VaryingHeaders, head

_OK, _NOT_MODIFIED = 200, 304
_TAG = re.compile(r"([0-9]{1,18})-([0-9a-f]{1,15})(?:-([0-9a-f]{8}))?")
"""A tag has the incarnation, the activation and a hash of the content (`core/document.py`)."""


class Polls:
    """Answers polls from the views in memory."""

    def __init__(self, rate_limit: RateLimit, varying: VaryingHeaders) -> None:
        self.varying = varying
        self.on_sight: Callable[[Member, tuple[EventId, ...]], None] = lambda _, __: None
        """Called with the events that an instance is the first of its scope to be shown."""
        self._rate_limit = rate_limit
        # Copied, so that a poll without a limit costs no call.
        self._limit = rate_limit.per_second
        self._test_limit = rate_limit.per_second_in_test_fleets

    def ready(self, request: Request, member: Member, closes: bool) -> bytes | None:
        """Return the whole response; None if it takes longer than a look into memory.

        That is so if the scope is not activated, if the caller is to wait, or if it may have a
        newer document than this node; only then has the request not been counted yet.
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
        """Return the response of a request that has been counted; None if it takes longer."""
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
        """Return the response with the scope's document, which must be activated."""
        form = member.view.forms.get(request.form + closes)
        if form is None:
            form = self._make_form(request, member, closes)
        member.polls += 1
        member.agent = request.agent
        return form[0] + self.varying.next() + form[1]

    def _make_form(self, request: Request, member: Member, closes: bool) -> tuple[bytes, bytes]:
        """Make the response's constant parts and keep them in the view until the next change.

        So this is also where an instance first sees what is new in a document.
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
    """Return whether the caller may have seen a newer document of an activated scope than this."""
    if request.tag == view.tag or view.activated_ms is None:
        return False
    return is_ahead(request.tag, view) and not matches(request.tag, view.tag)


def matches(tags: str, tag: str) -> bool:
    """Return whether If-None-Match names the tag. It may be quoted or not, weak, a list, or `*`."""
    if tags == tag:
        return True
    bare = tag.strip('"')
    return any(each in (bare, "*") for each in _bare(tags))


def is_ahead(tags: str, view: View) -> bool:
    """Return whether a tag names a newer document than the view's, or another of its number."""
    place = view.activated_ms or 0, view.incarnation
    return any((activation, number) >= place for number, activation, _ in _parts(tags))


def proves_loss(tags: str, view: View) -> bool:
    """Return whether a tag names a document of this activation that the store does not know.

    The view must be as new as the store. A client can make up a tag, so the caller of this must
    limit what follows from it.
    """
    _, _, content = view.tag.strip('"').split("-")
    return any(
        activation == view.activated_ms
        and (number > view.incarnation or (number == view.incarnation and other != content))
        for number, activation, other in _parts(tags)
        if other
    )


def _parts(tags: str) -> Iterator[tuple[int, int, str | None]]:
    """Yield the incarnation, the activation and the content of each tag in our form."""
    for found in map(_TAG.fullmatch, _bare(tags)):
        if found is not None:
            yield int(found[1]), int(found[2], 16), found[3]


def _bare(tags: str) -> Iterator[str]:
    return (each.strip().removeprefix("W/").strip('"') for each in tags.split(","))
