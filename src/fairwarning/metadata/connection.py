"""One client's HTTP connection: it receives requests, finds who asks, and sends the responses.

A known poll (`known_polls.py`) is answered before anything is parsed. A connection keeps its own
last one at hand, because comparing bytes is cheaper than looking them up. All else waits for its
turn (`fair_share.py`) and then goes through the parser: one request, or a piece of one, in each
turn. While a response is owed, nothing is parsed.

Polls that wait are in `held_poll.py`, wrong responses in `fault_injection.py`, and the end of a
silent connection in `expiry.py`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import cast

from fairwarning.engine.protocols import StoreDown
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.endpoint_state import EndpointState
from fairwarning.metadata.expiry import ExpiringConnection
from fairwarning.metadata.held_poll import HeldPoll, hold
from fairwarning.metadata.http_parser import ReceivedRequest, Refusal, RequestParser
from fairwarning.metadata.polls import is_behind
from fairwarning.metadata.requests import Kind, Request, parse_request
from fairwarning.metadata.responses import (
    BROKEN,
    OUT_OF_SERVICE,
    TOO_MANY_REQUESTS,
    Response,
    to_bytes,
)
from fairwarning.metadata.settings import REMEMBERED_BYTES_MAX, WAITING_BYTES_MAX

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LastPoll = tuple[bytes, Request, Member, int, Callable[[bytes], None]]
"""A poll's bytes, its meaning, its caller, the fleet's generation, and where to write.

A plain tuple, because a named one takes longer to unpack.
"""


class Connection(ExpiringConnection, asyncio.Protocol):
    """One connection of one client. Its public methods are for the event loop, for the parts that
    are named above, and for `OpenConnections`.
    """

    __slots__ = ("_awaits_turn", "_cancellable_task", "_closes", "_first_bytes", "_generation",
                 "_held_poll", "_is_busy", "_is_ended", "_is_full", "_last_bytes", "_last_poll",
                 "_member", "_on_loopback", "_parser", "_state", "address",
                 "transport")  # fmt: skip

    def __init__(
        self,
        state: EndpointState,
        address: str,
        *,
        on_loopback: bool,
        first_bytes: bytes = b"",
        last_bytes: bytes = b"",
    ) -> None:
        """`first_bytes` were received before there was a transport. `last_bytes` are the rest of
        a response: they are sent, and then the connection ends.
        """
        self._state = state
        self._first_bytes = first_bytes
        self._last_bytes = last_bytes
        self.address = address
        self._on_loopback = on_loopback
        self.transport: asyncio.Transport | None = None
        """None before the connection is made and after it is lost."""
        self._parser: RequestParser | None = None
        """The parser with what was received and is not answered yet; None: nothing."""
        self._awaits_turn = False
        self._member: Member | None = None
        """The instance that the source address stands for, in `_generation` of the fleet."""
        self._generation = -1
        self._is_busy = False
        """Whether a response is owed, so that the next request must wait."""
        self._is_full = False
        """Whether the client does not read its responses."""
        self._is_ended = False
        """Whether the client has closed its side."""
        self._closes = False
        """Whether our side is closed, or about to be."""
        self._held_poll: HeldPoll | None = None
        self._cancellable_task: asyncio.Task[None] | None = None
        """The task to cancel if the client leaves."""
        self._last_poll: LastPoll | None = None
        self._expect_request()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._state.connections.add(self)
        first_bytes, self._first_bytes = self._first_bytes, b""
        if self._last_bytes:
            self._write(self._last_bytes, closes=True)
        elif first_bytes:
            self.data_received(first_bytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.remove(self)
        self._stop_holding()
        if self._cancellable_task is not None:
            self._cancellable_task.cancel()
        self.transport = self._last_poll = self._parser = None

    def data_received(self, data: bytes) -> None:
        """Answer a known poll at once; keep all else for this connection's turn."""
        try:
            if self._parser is None and not (self._is_busy or self._is_full or self._closes):
                state, last_poll = self._state, self._last_poll
                if last_poll is not None:
                    raw, request, member, generation, write = last_poll
                    if data == raw and generation == state.views.generation:
                        ready = state.ready(request, member, False)
                        if ready is not None:
                            self._has_answered = True
                            write(ready)
                        else:
                            self._poll_later(request, member, False)
                        return
                known = state.known_by_bytes.get(data)
                if known is not None:
                    self._poll(*known)
                    self._remember_last_poll(data, *known)
                    return
            self._add(data)
        except Exception:
            self.fail()

    def eof_received(self) -> bool:
        """Let a client that half-closes have its responses, unless they could be minutes away."""
        self._is_ended = True
        is_activating = self._cancellable_task is not None and self._state.rules.activation_delay_s
        if self._held_poll is not None or is_activating:
            return False
        return self._is_busy or self._has_unparsed

    def pause_writing(self) -> None:
        """Read nothing more from a client that does not read its responses."""
        self._is_full = True
        self._pause_or_resume_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        self._pause_or_resume_reading()
        self._go_on()

    def forget_poll(self) -> None:
        self._last_poll = None

    def shut_down(self) -> None:
        """Tell a held poll to come again; close at once if nothing is owed."""
        if self._held_poll is not None:
            self._stop_holding()
            self._is_busy = False
            self._send_last(OUT_OF_SERVICE)
        elif not self._is_busy and self.transport is not None:
            self.transport.close()

    def expire(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _add(self, data: bytes) -> None:
        """Keep what was received until it is this connection's turn."""
        if self._closes:
            return
        if self._parser is None:
            self._parser = RequestParser(self._continue)
            if not self._is_busy and not data.isspace():
                # Empty lines may come before a request, but are none: they buy no time.
                self._expect_request()
        self._parser.add(data)
        self._pause_or_resume_reading()
        self._ask_for_turn()

    @property
    def _has_unparsed(self) -> bool:
        return self._parser is not None and self._parser.waiting > 0

    def _pause_or_resume_reading(self) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        unparsed = 0 if self._parser is None else self._parser.waiting
        if self._is_full or unparsed > WAITING_BYTES_MAX:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _ask_for_turn(self) -> None:
        if not (self._awaits_turn or self._is_busy or self._is_full):
            self._awaits_turn = True
            self._state.fair_share.run(self.address, self._take_turn)

    def _take_turn(self) -> None:
        """Parse one request, or a piece of one, and answer it."""
        self._awaits_turn = False
        parser, transport = self._parser, self.transport
        if parser is None or transport is None or transport.is_closing() or self._is_full:
            return
        try:
            received = parser.take()
            if parser.is_empty:
                self._parser = None
            if received is not None:
                self._handle(received)
            self._pause_or_resume_reading()
            self._go_on()
        except Refusal as refusal:
            self._parser = None
            self._decline(refusal.response, closes=True, has_body=True)
        except Exception:
            self.fail()

    def _go_on(self) -> None:
        """Ask for the next turn if something waits; close if nothing more can come."""
        if self._is_busy:
            return
        if self._has_unparsed:
            self._ask_for_turn()
        elif self._is_ended and not self._closes and self.transport is not None:
            self._closes = True
            self.transport.close()

    def _continue(self) -> None:
        if self.transport is not None:
            self.transport.write(_CONTINUE)

    def _handle(self, received: ReceivedRequest) -> None:
        closes = not received.keeps_alive
        request = parse_request(received.head, self._state.rules)
        if isinstance(request, Response):
            self._decline(request, closes=closes, has_body=received.head.method != "HEAD")
            return
        if self._state.must_inspect and self._is_struck(request, received, closes):
            return
        if request.kind is Kind.EVENTS:
            raw = received.raw
            if raw is not None and len(raw) <= REMEMBERED_BYTES_MAX and not received.body:
                self._state.remember_poll(raw, request, closes=closes)
            self._poll(request, closes)
            return
        member = self.find_caller(request)
        if isinstance(member, Response):
            self.send(member, closes=closes)
        elif (refused := self._state.rate_limit.refuse(member, closes)) is not None:
            self._write(refused, closes)
        else:
            work = self._answer(request, member, received.body, closes)
            self.begin(work, ends_early=self._state.handlers.is_delayed(request, member))

    def _decline(self, refusal: Response, *, closes: bool, has_body: bool) -> None:
        """Refuse a request, which counts towards the caller's limit if the address is known."""
        member = self._state.by_address(self.address)
        if member is not None and self._state.rate_limit.refuse(member, closes) is not None:
            refusal = TOO_MANY_REQUESTS
        self.send(refusal, closes=closes, has_body=has_body)

    def _is_struck(self, request: Request, received: ReceivedRequest, closes: bool) -> bool:
        """Tell the watchers of the request. Return whether an injected fault answers it."""
        member = self.find_caller(request)
        if isinstance(member, Response):
            return False
        fault = self._state.faults.draw(member, request)
        self._state.tell(member, request, received, fault)
        if fault is None:
            return False
        self._state.faults.inject(fault, self, request, member, received.body, closes)
        return True

    def find_caller(self, request: Request) -> Member | Response:
        """Return the instance that asks, or the response that refuses the request."""
        callers, generation = self._state.callers, self._state.views.generation
        if not request.is_plain or (request.is_foreign and self._on_loopback):
            return callers.find(request, self.address, on_loopback=self._on_loopback)
        if self._generation != generation or self._member is None:
            found = callers.find(request, self.address, on_loopback=self._on_loopback)
            if isinstance(found, Response):
                return found
            self._member, self._generation = found, generation
        return self._member

    def _poll(self, request: Request, closes: bool) -> None:
        member = self.find_caller(request)
        if isinstance(member, Response):
            self.send(member, closes=closes)
            return
        ready = self._state.ready(request, member, closes)
        if ready is not None:
            self._write(ready, closes)
        else:
            self._poll_later(request, member, closes)

    def _poll_later(self, request: Request, member: Member, closes: bool) -> None:
        """Answer a poll that memory can't answer now: activate, hold, or catch up first."""
        handlers, view = self._state.handlers, member.view
        if view.activated_ms is None:
            activating = handlers.activate(member)
            self.begin(self._poll_after(activating, request, member, closes), ends_early=True)
        elif not is_behind(request, view):
            self._hold(request, member, closes)
        elif (refused := self._state.rate_limit.refuse(member, closes)) is not None:
            self._write(refused, closes)
        else:
            catching_up = handlers.catch_up(request.tag, view)
            self.begin(self._poll_after(catching_up, request, member, closes), ends_early=True)

    def _remember_last_poll(self, raw: bytes, request: Request, closes: bool) -> None:
        """Keep a poll at hand, unless the connection waits or ends, or the address says too
        little about the caller.
        """
        if closes or self._is_busy or self._member is None or self.transport is None:
            return
        if request.is_plain and not (request.is_foreign and self._on_loopback):
            self._last_poll = (raw, request, self._member, self._generation, self.transport.write)

    def _hold(self, request: Request, member: Member, closes: bool) -> None:
        if self._is_ended and self.transport is not None:
            # The client closed its side before its poll came to wait; see `eof_received`.
            self._closes, self._parser = True, None
            self.transport.close()
            return
        self._held_poll = hold(self, request, member, closes)
        self._is_busy = True
        self._suspend_expiry()

    def end_held_poll(self, held: HeldPoll, is_changed: bool, is_same_caller: bool) -> None:
        """Answer a poll that was held: with the new document, or with 304 after its time."""
        self._held_poll = None
        self._is_busy = False
        request, member, closes = held.request, held.member, held.closes
        if not is_same_caller or member.view.activated_ms is None:
            # The instance is gone, its address is another's now, or the scope was switched off.
            self._poll(request, closes)
        elif is_changed:
            self._write(self._state.polls.document(request, member, closes), closes)
        else:
            self._write(self._state.polls.not_modified(member.view, closes), closes)
        self._go_on()

    def _stop_holding(self) -> None:
        if self._held_poll is not None:
            self._held_poll.cancel()
            self._held_poll = None

    def begin(self, work: Coroutine[object, object, None], *, ends_early: bool = False) -> None:
        """Run work that ends in a response; `ends_early`: cancel it if the client leaves."""
        self._is_busy = True
        self._suspend_expiry()
        task = self._state.spawn(work)
        if ends_early:
            self._cancellable_task = task
            task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        if self._cancellable_task is task:
            self._cancellable_task = None

    async def _poll_after(
        self,
        needed: Coroutine[object, object, None],
        request: Request,
        member: Member,
        closes: bool,
    ) -> None:
        """Answer a poll once what it needs is there: an activation, or a newer document."""
        try:
            await needed
        except StoreDown:
            self.finish(OUT_OF_SERVICE, closes)
            return
        except Exception:
            self.fail()
            return
        self._is_busy = False
        self._cancellable_task = None
        if self.find_caller(request) is not member:
            # It took a while, and the address may belong to another instance by now.
            self._poll(request, closes)
            self._go_on()
            return
        ready = self._state.polls.answer(request, member, closes)
        if ready is not None:
            self._write(ready, closes)
        elif member.view.activated_ms is not None:
            self._hold(request, member, closes)
        else:
            self.send(OUT_OF_SERVICE, closes=closes)
        self._go_on()

    async def _answer(self, request: Request, member: Member, body: bytes, closes: bool) -> None:
        try:
            response = await self._state.handlers.answer(request, member, body, self._finish_anyway)
        except Exception:
            self.fail()
            return
        self.finish(response, closes)

    def _finish_anyway(self) -> None:
        """Cancel the task no more when the client leaves: its effects may be half stored."""
        self._cancellable_task = None

    def finish(self, response: Response, closes: bool) -> None:
        """Send the response that begun work has made, and go on with the next request."""
        self._is_busy = False
        self.send(response, closes=closes)
        self._go_on()

    def finish_bytes(self, ready: bytes, closes: bool) -> None:
        """Send the last bytes of a response that begun work has made, and go on."""
        self._is_busy = False
        self._write(ready, closes)
        self._go_on()

    def fail(self) -> None:
        """Log a bug of ours, and answer 500. Only this client notices it."""
        self._state.log_broken()
        self._is_busy = False
        self._send_last(BROKEN)

    def _send_last(self, response: Response) -> None:
        """Send a response and close, whatever else the client has sent."""
        self._parser = None
        if not self._closes:
            self.send(response, closes=True)

    def send(self, response: Response, *, closes: bool, has_body: bool = True) -> None:
        """Send a response, and close the connection after it if `closes` is true."""
        closes = closes or response.closes
        ready = to_bytes(response, self._state.polls.varying, closes=closes, has_body=has_body)
        self._write(ready, closes)

    def _write(self, ready: bytes, closes: bool) -> None:
        self._has_answered = not self._is_full
        if self.transport is None:
            return
        self.transport.write(ready)
        if closes:
            self._closes = True
            self._parser = None
            self.transport.close()
        elif self._parser is not None and not self._is_busy:
            # The next request has begun, and must be whole before long.
            self._expect_request()
