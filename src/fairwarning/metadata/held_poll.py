"""A held poll (long-poll) waits for the next change of its document, at most its own `wait`.

It has no task of its own: the scope's view calls it when the document changes, and the event
loop calls it when its time is over. Either way it hands itself back to its connection.
"""

import asyncio
from typing import Protocol

from msgspec import Struct

from fairwarning.engine.scope_view import Member
from fairwarning.metadata.requests import Request
from fairwarning.metadata.responses import Response


class PollOwner(Protocol):
    """What a held poll needs of the connection that it came on."""

    def find_caller(self, request: Request, /) -> Member | Response:
        """Return the instance that the request counts for now."""

    def end_held_poll(self, held: "HeldPoll", is_changed: bool, is_same_caller: bool, /) -> None:
        """Answer the poll, which no longer waits."""


class HeldPoll(Struct, eq=False):
    """One poll that is held. It is a Struct, because a dataclass would take longer to create."""

    owner: PollOwner
    request: Request
    member: Member
    """The instance that asked."""
    closes: bool
    """Whether the connection ends with the response."""
    tag: str
    """The tag of the document that the poll waits to see replaced."""
    timer: asyncio.TimerHandle | None = None
    is_over: bool = False

    def cancel(self) -> None:
        """Wait no longer, and say nothing to the connection."""
        self.is_over = True
        if self.timer is not None:
            self.timer.cancel()
        self.member.view.forget(self._on_change)

    def _on_change(self) -> None:
        if self.is_over:
            # One wake-up calls a whole list, and another poll on it may have ended this one.
            return
        member = self.member
        view = member.view
        is_same_caller = self.owner.find_caller(self.request) is member
        if is_same_caller and view.tag == self.tag:
            # Another instance of the scope was removed or moved; this document is the same.
            view.listen(self._on_change)
            return
        self.cancel()
        self.owner.end_held_poll(self, True, is_same_caller)

    def _time_out(self) -> None:
        self.cancel()
        self.owner.end_held_poll(self, False, self.owner.find_caller(self.request) is self.member)


def hold(owner: PollOwner, request: Request, member: Member, closes: bool) -> HeldPoll:
    """Begin to hold a poll whose caller already has the present document."""
    view = member.view
    held = HeldPoll(owner, request, member, closes, view.tag)
    held.timer = asyncio.get_running_loop().call_later(request.wait_s, held._time_out)
    view.listen(held._on_change)
    return held
