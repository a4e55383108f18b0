"""One client's HTTP connection: it receives requests, finds who asks, and sends the responses.

A known poll (`polls.py`) is answered without parsing. A connection also keeps its own last
poll, because comparing bytes is cheaper than looking them up. All other bytes wait for the
connection's turn (`fair_share.py`). In each turn, one request or a piece of one is parsed. Nothing
is parsed while a response is still to be sent.

`polls.py` has polls that wait, `fault_injection.py` wrong responses, and `expiry.py` the end of
silent connections.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import cast

from fairwarning.engine.protocols import StoreDown
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.endpoint_state import EndpointState
from fairwarning.metadata.expiry import ExpiringConnection
from fairwarning.metadata.http_parser import ReceivedRequest, Refusal, RequestParser
from fairwarning.metadata.polls import HeldPoll, hold, is_behind
from fairwarning.metadata.requests import Kind, Request, parse_request
from fairwarning.metadata.responses import (
    AGE_HEADER,
    BROKEN,
    NO_METADATA_HEADER,
    OUT_OF_DATE,
    OUT_OF_SERVICE,
    TOO_MANY_REQUESTS,
    Response,
    to_bytes,
    with_age,
)
from fairwarning.metadata.settings import REMEMBERED_BYTES_MAX, WAITING_BYTES_MAX

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LastPoll = tuple[bytes, Request, Member, int, Callable[[bytes], None]]
"""A poll's bytes, its parsed request, its caller, the fleet's generation, and the write function.
It is a plain tuple, because a named tuple takes longer to unpack.
"""


class Connection(ExpiringConnection, asyncio.Protocol):
    """The HTTP connection of one client, from its first bytes to its end."""

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
        """Create a connection for a client at `address`.

        `first_bytes` were received before there was a transport. `last_bytes` are the rest of a
        response; if there are any, they are sent and the connection is closed. `on_loopback` says
        whether both ends are on loopback.
        """
        self._state = state
        self._first_bytes = first_bytes
        self._last_bytes = last_bytes
        self.address = address
        self._on_loopback = on_loopback
        self.transport: asyncio.Transport | None = None
        """The transport. It is None before the connection is made and after it is lost."""
        self._parser: RequestParser | None = None
        """The parser, with the bytes that are not answered yet. It is None if there are none."""
        self._awaits_turn = False
        self._member: Member | None = None
        """The instance that has the source address, found in `_generation` of the fleet."""
        self._generation = -1
        self._is_busy = False
        """Whether a response is still to be sent, so that the next request must wait."""
        self._is_full = False
        """Whether the client does not read its responses."""
        self._is_ended = False
        """Whether the client has closed its side."""
        self._closes = False
        """Whether our side is closed, or will be once everything is sent."""
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
        """Answer a known poll at once. Keep all other bytes until this connection's turn."""
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
        """Note that the client closed its side. Return whether the connection stays open. It stays
        open if a response is still to be sent, unless that could take minutes.
        """
        self._is_ended = True
        is_activating = self._cancellable_task is not None and self._state.rules.activation_delay_s
        if self._held_poll is not None or is_activating:
            return False
        return self._is_busy or self._has_unparsed

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its responses."""
        self._is_full = True
        self._pause_or_resume_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        self._pause_or_resume_reading()
        self._go_on()

    def forget_poll(self) -> None:
        self._last_poll = None

    def shut_down(self) -> None:
        """Answer a held poll with 503. Close at once if no response is still to be sent."""
        if self._held_poll is not None:
            self._stop_holding()
            self._is_busy = False
            self._send_last(OUT_OF_SERVICE)
        elif not self._is_busy and self.transport is not None:
            self.transport.close()

    def refuse_held_poll(self) -> None:
        """Answer a held poll with 503, because the documents are too old."""
        if (held := self._held_poll) is not None:
            self._stop_holding()
            self.finish(OUT_OF_DATE, held.closes)

    def end_held_poll_early(self) -> None:
        """Answer a held poll as if its time were over, and close. The client then polls again."""
        held = self._held_poll
        if held is not None:
            held.cancel()
            held.closes = True
            self.end_held_poll(held, False, self.find_caller(held.request) is held.member)

    def expire(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _add(self, data: bytes) -> None:
        """Keep received bytes until it is this connection's turn."""
        if self._closes:
            return
        if self._parser is None:
            self._parser = RequestParser(self._continue)
            if not self._is_busy and not data.isspace():
                # Empty lines may come before a request, but they must not extend its time limit.
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
        """Ask for a turn if bytes wait to be parsed. Close if none do and the client has closed."""
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
        closes = not received.keeps_alive or self._state.is_ending
        request = parse_request(received.head, self._state.rules)
        if isinstance(request, Response):
            self._state.tell_refused(received.head, request)
            if request is NO_METADATA_HEADER and received.head.method == "POST":
                self._tell_of_missing_header(received)
            self._decline(request, closes=closes, has_body=received.head.method != "HEAD")
            return
        if self._state.must_inspect and self._is_struck(request, received, closes):
            return
        if self._state.is_expired and request.kind in (Kind.EVENTS, Kind.INSTANCE):
            self._decline(OUT_OF_DATE, closes=closes, has_body=True)
            return
        if request.kind is Kind.EVENTS:
            raw = received.raw
            if request.wants_age:
                self._poll_with_age(request, closes)
                return
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

    def _tell_of_missing_header(self, received: ReceivedRequest) -> None:
        """Tell the operator of an approval that is refused only for want of the header."""
        approval = self._state.lenient_post.approval_in(received.head)
        if approval is not None:
            member = self.find_caller(approval)
            if not isinstance(member, Response):
                self._state.tell_no_header(member, approval, received)

    def _decline(self, refusal: Response, *, closes: bool, has_body: bool) -> None:
        """Send a refusal. The request counts for the rate limit if the address has an instance."""
        member = self._state.by_address(self.address)
        if member is not None and self._state.rate_limit.refuse(member, closes) is not None:
            refusal = TOO_MANY_REQUESTS
        self.send(refusal, closes=closes, has_body=has_body)

    def _is_struck(self, request: Request, received: ReceivedRequest, closes: bool) -> bool:
        """Tell the watchers about the request. Return whether an injected fault answers it."""
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
        """Return the instance that sent the request, or the response that refuses it."""
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

    def _poll_with_age(self, request: Request, closes: bool) -> None:
        """Answer a poll that asks for the age. Such a poll is never a known one."""
        member = self.find_caller(request)
        if isinstance(member, Response):
            self.send(member, closes=closes)
        elif (ready := self._state.ready(request, member, closes)) is None:
            self._poll_later(request, member, closes)
        else:
            self._write(self._marked(request, ready), closes)

    def _marked(self, request: Request, ready: bytes) -> bytes:
        """Return the response with its age if the request asks for it."""
        return with_age(ready, self._state.freshness.age_s()) if request.wants_age else ready

    def _poll_later(self, request: Request, member: Member, closes: bool) -> None:
        """Answer a poll later: activate the scope, hold the poll, or read the scope again first."""
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
        """Keep a poll as this connection's last one, if the connection goes on and the source
        address alone decides who the caller is.
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
        """Answer a held poll, with the new document if `is_changed`, else with 304."""
        self._held_poll = None
        self._is_busy = False
        request, member, closes = held.request, held.member, held.closes
        if not is_same_caller or member.view.activated_ms is None:
            # The instance is gone, its address is another's now, or the scope was switched off.
            self._poll(request, closes)
        else:
            polls, view = self._state.polls, member.view
            changed = polls.document(request, member, closes) if is_changed else None
            ready = changed or polls.not_modified(view, closes)
            self._write(self._marked(request, ready), closes)
        self._go_on()

    def _stop_holding(self) -> None:
        if self._held_poll is not None:
            self._held_poll.cancel()
            self._held_poll = None

    def begin(self, work: Coroutine[object, object, None], *, ends_early: bool = False) -> None:
        """Run work that ends with a response. If `ends_early`, a client that leaves cancels it."""
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
        """Wait for `needed`, which activates or reads the scope, and then answer the poll."""
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
            self._write(self._marked(request, ready), closes)
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
        if request.wants_age:
            headers = {**response.headers, AGE_HEADER: f"{int(self._state.freshness.age_s())}"}
            response = replace(response, headers=headers)
        self.finish(response, closes)

    def _finish_anyway(self) -> None:
        """Don't cancel the task from now on if the client leaves: it may have stored a part."""
        self._cancellable_task = None

    def finish(self, response: Response, closes: bool) -> None:
        """Send the response of the work that `begin` started, and go on with the next request."""
        self._is_busy = False
        self.send(response, closes=closes)
        self._go_on()

    def finish_bytes(self, ready: bytes, closes: bool) -> None:
        """Send the last bytes of a response that started work has made, and go on."""
        self._is_busy = False
        self._write(ready, closes)
        self._go_on()

    def fail(self) -> None:
        """Log the current exception, which is a bug of ours; answer 500 and close."""
        self._state.log_broken()
        self._is_busy = False
        self._send_last(BROKEN)

    def _send_last(self, response: Response) -> None:
        """Send a response and close. Other requests of the client are dropped."""
        self._parser = None
        if not self._closes:
            self.send(response, closes=True)

    def send(self, response: Response, *, closes: bool, has_body: bool = True) -> None:
        """Send a response, and close the connection after it if `closes` is true."""
        closes = closes or response.closes
        ready = to_bytes(response, self._state.polls.varying, closes=closes, has_body=has_body)
        self._write(ready, closes)

    def _write(self, ready: bytes, closes: bool) -> None:
        self._has_answered = True
        if self.transport is None:
            return
        self.transport.write(ready)
        if closes:
            self._closes = True
            self._parser = None
            self.transport.close()
        elif self._parser is not None and not self._is_busy:
            # The next request has begun, so its time limit starts now.
            self._expect_request()
