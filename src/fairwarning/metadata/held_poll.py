"""A held poll (long-poll) waits for the next change of its document, for at most its `wait`.

It has no task of its own. The scope's view calls it when the document changes, and the event loop
calls it when the time is over. In both cases, it calls its connection, which answers it.
"""

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from fairwarning.engine.scope_view import Member
from fairwarning.metadata.requests import Request

if TYPE_CHECKING:
    from fairwarning.metadata.connection import Connection


class HeldPoll(Struct, eq=False):
    """One poll that is held. It is a Struct, because a dataclass would take longer to create."""

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
