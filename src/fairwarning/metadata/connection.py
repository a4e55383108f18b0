"""One client's connection: polls that we know are answered before they are parsed.

Theory of operation. A poller sends the same bytes for hours. When a request that came in
one piece turns out to be a poll, its bytes are remembered together with their meaning;
the next time equal bytes come, parsing is skipped and nothing else. A connection keeps its
own last such poll at hand, because comparing bytes is cheaper than looking them up. Whatever
is not a known poll waits for its turn (`turns.py`) and then goes through the parser: one
request, or a piece of one, in each turn. While an answer is owed, nothing is parsed. A poll
that waits holds no task: the view calls back when its document changes.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import cast

from fairwarning.core.faults import Fault, FaultKind
from fairwarning.engine.protocols import StoreDown
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.endpoint_state import Service
from fairwarning.metadata.fault_injection import EMPTY, reset, send_slowly, status_answer
from fairwarning.metadata.http_parser import Reader, Received, Refusal
from fairwarning.metadata.requests import Ask, Kind, read
from fairwarning.metadata.responses import (
    BROKEN,
    OUT_OF_SERVICE,
    TOO_MANY_REQUESTS,
    Answer,
    to_bytes,
)
from fairwarning.metadata.settings import (
    KEEP_ALIVE_S,
    REMEMBERED_BYTES_MAX,
    REQUEST_S_MAX,
    WAITING_BYTES_MAX,
)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
Wait = tuple[Callable[[], None], asyncio.TimerHandle, Ask, Member, bool, str]
"""Whom the view calls, until when, for what, as whom, whether it ends here, and since which tag."""
Usual = tuple[bytes, Ask, Member, int, Callable[[bytes], None]]
"""The bytes of a poll, what they mean, who asks, in which generation of the fleet, and to where."""


class Connection(asyncio.Protocol):
    __slots__ = ("_asked_for_turn", "_closes", "_expires_s", "_farewell", "_first",
                 "_generation", "_has_answered", "_is_busy", "_is_ended", "_is_full", "_member",
                 "_on_loopback", "_reader", "_service", "_transport", "_usual", "_wait",
                 "_waiting", "address")  # fmt: skip

    def __init__(
        self,
        service: Service,
        address: str,
        *,
        on_loopback: bool,
        first: bytes = b"",
        farewell: bytes = b"",
    ) -> None:
        """`first` was read before there was a transport; `farewell` is all that is left to say."""
        self._service = service
        self._first = first
        self._farewell = farewell
        self.address = address
        self._on_loopback = on_loopback
        self._transport: asyncio.Transport | None = None
        self._reader: Reader | None = None
        """What came and is not answered yet; None: nothing."""
        self._asked_for_turn = False
        self._member: Member | None = None
        self._generation = -1
        self._is_busy = False
        self._is_full = False
        self._is_ended = False
        self._closes = False
        self._wait: Wait | None = None
        self._waiting: asyncio.Task[None] | None = None
        """A request that waits for what it needs, and ends if its client leaves."""
        self._usual: Usual | None = None
        self._has_answered = False
        """Since the last sweep; reading a clock at every answer would cost more."""
        self._expires_s: float = time.monotonic() + REQUEST_S_MAX
        """When silence ends the connection; infinite while we owe the answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._service.join(self)
        first, self._first = self._first, b""
        if self._farewell:
            self._write(self._farewell, closes=True)
        elif first:
            self.data_received(first)

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.leave(self)
        self._stop_waiting()
        if self._waiting is not None:
            self._waiting.cancel()
        self._transport = self._usual = self._reader = None

    def data_received(self, data: bytes) -> None:
        try:
            if self._reader is None and not (self._is_busy or self._is_full or self._closes):
                service, usual = self._service, self._usual
                if usual is not None:
                    raw, ask, member, generation, write = usual
                    if data == raw and generation == service.views.generation:
                        ready = service.ready(ask, member, False)
                        if ready is not None:
                            self._has_answered = True
                            write(ready)
                        else:
                            self._put_off(ask, member, closes=False)
                        return
                known = service.remembered.get(data)
                if known is not None:
                    self._poll(*known)
                    self._learn(data, *known)
                    return
            self._add(data)
        except Exception:
            self._break()

    def eof_received(self) -> bool:
        """A client that half-closes still gets its answers, unless that could be minutes away."""
        self._is_ended = True
        is_activating = self._waiting is not None and self._service.rules.activation_delay_s
        if self._wait is not None or is_activating:
            return False
        return self._is_busy or self._has_waiting

    def pause_writing(self) -> None:
        """Who does not read his answers is not read from either."""
        self._is_full = True
        self._pause_or_resume_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        self._pause_or_resume_reading()
        self._go_on()

    def _break(self) -> None:
        """A bug of ours. The client hears of it, and nobody else does."""
        self._service.log_broken()
        self._is_busy = False
        self._refuse(BROKEN)

    def sweep(self, now_s: float) -> None:
        """Called about once a second."""
        if self._has_answered:
            self._has_answered = False
            self._expires_s = now_s + KEEP_ALIVE_S
        elif self._expires_s < now_s:
            self.expire()

    def _hold_open(self) -> None:
        """We owe an answer, so silence is ours."""
        self._has_answered = False
        self._expires_s = float("inf")

    def shut(self) -> None:
        """The server stops."""
        if self._wait is not None:
            self._stop_waiting()
            self._is_busy = False
            self._refuse(OUT_OF_SERVICE)
        elif not self._is_busy and self._transport is not None:
            self._transport.close()

    def expire(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _add(self, data: bytes) -> None:
        """Keeps what came until it is this connection's turn."""
        if self._closes:
            return
        if self._reader is None:
            self._reader = Reader(self._continue)
            if not data.isspace():
                # Empty lines may come before a request, but are none: they buy no time.
                self._expect_request()
        self._reader.add(data)
        self._pause_or_resume_reading()
        self._ask_for_turn()

    @property
    def _has_waiting(self) -> bool:
        return self._reader is not None and self._reader.waiting > 0

    def _pause_or_resume_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        waiting = 0 if self._reader is None else self._reader.waiting
        if self._is_full or waiting > WAITING_BYTES_MAX:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _ask_for_turn(self) -> None:
        if not (self._asked_for_turn or self._is_busy or self._is_full):
            self._asked_for_turn = True
            self._service.turns.ask(self.address, self._take_turn)

    def _take_turn(self) -> None:
        """Parses one request, or a piece of one, and answers it."""
        self._asked_for_turn = False
        reader, transport = self._reader, self._transport
        if reader is None or transport is None or transport.is_closing() or self._is_full:
            return
        try:
            received = reader.take()
            if reader.is_empty:
                self._reader = None
            if received is not None:
                self._handle(received)
            self._pause_or_resume_reading()
            self._go_on()
        except Refusal as refusal:
            self._reader = None
            self._decline(refusal.answer, closes=True, has_body=True)
        except Exception:
            self._break()

    def _go_on(self) -> None:
        """Asks for the next turn if something waits; closes if nothing more can come."""
        if self._is_busy:
            return
        if self._has_waiting:
            self._ask_for_turn()
        elif self._is_ended and not self._closes and self._transport is not None:
            self._closes = True
            self._transport.close()

    def _continue(self) -> None:
        if self._transport is not None:
            self._transport.write(_CONTINUE)

    def _handle(self, received: Received) -> None:
        closes = not received.keeps_alive
        ask = read(received.head, self._service.rules)
        if isinstance(ask, Answer):
            self._decline(ask, closes=closes, has_body=received.head.method != "HEAD")
            return
        if self._service.is_careful and self._strike(ask, received, closes):
            return
        if ask.kind is Kind.EVENTS:
            raw = received.raw
            if raw is not None and len(raw) <= REMEMBERED_BYTES_MAX and not received.body:
                self._service.remember(raw, ask, closes=closes)
            self._poll(ask, closes)
            return
        member = self._find(ask)
        if isinstance(member, Answer):
            self._send(member, closes=closes)
        elif (refused := self._service.polls.throttle(member, closes=closes)) is not None:
            self._write(refused, closes=closes)
        else:
            answering = self._answer(ask, member, received.body, closes)
            self._begin(answering, ends_early=self._service.endpoint.is_delayed(ask, member))

    def _decline(self, refusal: Answer, *, closes: bool, has_body: bool) -> None:
        """What is refused counts towards the caller's limit too, as far as we know him."""
        member = self._service.by_address(self.address)
        if member is not None and self._service.polls.throttle(member, closes=closes) is not None:
            refusal = TOO_MANY_REQUESTS
        self._send(refusal, closes=closes, has_body=has_body)

    def _strike(self, ask: Ask, received: Received, closes: bool) -> bool:
        """Whether a fault has taken the request out of the ordinary way."""
        member = self._find(ask)
        if isinstance(member, Answer):
            return False
        fault = self._service.faulty.strike(member, ask)
        self._service.tell(member, ask, received, fault)
        if fault is None:
            return False
        match fault.kind:
            case FaultKind.STATUS:
                self._send(status_answer(fault), closes=closes)
            case FaultKind.EMPTY:
                self._send(EMPTY, closes=closes)
            case FaultKind.RESET:
                if self._transport is not None:
                    reset(self._transport)
            case _:
                suffering = self._suffer(fault, ask, member, received.body, closes)
                self._begin(suffering, ends_early=ask.kind is Kind.EVENTS)
        return True

    async def _suffer(
        self, fault: Fault, ask: Ask, member: Member, body: bytes, closes: bool
    ) -> None:
        """Faults that take their time, or need the document."""
        try:
            if fault.kind is FaultKind.SLOW:
                # Real time: it is the client's own patience that is tried.
                await asyncio.sleep(fault.delay_ms / 1000)
            answer = await self._service.spoilt(fault, ask, member, body)
            if fault.kind is FaultKind.SLOW_BODY:
                await self._drip(answer, fault.delay_ms, closes)
                return
        except StoreDown:
            answer = OUT_OF_SERVICE
        except Exception:
            self._break()
            return
        self._finish(answer, closes)

    async def _drip(self, answer: Answer, over_ms: int, closes: bool) -> None:
        whole = to_bytes(answer, self._service.polls.stamp, closes=closes)
        if self._transport is not None:
            last = await send_slowly(self._transport, whole, len(answer.body), over_ms)
            self._is_busy = False
            self._write(last, closes=closes)
            self._go_on()

    def _find(self, ask: Ask) -> Member | Answer:
        callers, generation = self._service.callers, self._service.views.generation
        if not ask.is_plain or (ask.is_foreign and self._on_loopback):
            return callers.find(ask, self.address, on_loopback=self._on_loopback)
        if self._generation != generation or self._member is None:
            found = callers.find(ask, self.address, on_loopback=self._on_loopback)
            if isinstance(found, Answer):
                return found
            self._member, self._generation = found, generation
        return self._member

    def _poll(self, ask: Ask, closes: bool) -> None:
        member = self._find(ask)
        if isinstance(member, Answer):
            self._send(member, closes=closes)
            return
        ready = self._service.ready(ask, member, closes)
        if ready is not None:
            self._write(ready, closes)
        else:
            self._put_off(ask, member, closes)

    def _put_off(self, ask: Ask, member: Member, closes: bool) -> None:
        endpoint, view, polls = self._service.endpoint, member.view, self._service.polls
        if view.activated_ms is None:
            activating = endpoint.activate(member)
            self._begin(self._poll_after(activating, ask, member, closes), ends_early=True)
        elif not polls.is_behind(ask, view):
            self._hold(ask, member, closes)
        elif (refused := polls.throttle(member, closes=closes)) is not None:
            self._write(refused, closes=closes)
        else:
            catching_up = endpoint.catch_up(ask.tag, view)
            self._begin(self._poll_after(catching_up, ask, member, closes), ends_early=True)

    def _learn(self, raw: bytes, ask: Ask, closes: bool) -> None:
        """Only of one who polls on: a connection that waits or ends needs no memory."""
        if closes or self._is_busy or self._member is None or self._transport is None:
            return
        if ask.is_plain and not (ask.is_foreign and self._on_loopback):
            self._usual = (raw, ask, self._member, self._generation, self._transport.write)

    def unlearn(self) -> None:
        self._usual = None

    def _hold(self, ask: Ask, member: Member, closes: bool) -> None:
        """The long-poll: answered by the next change, or with 304 when its time is up."""
        if self._is_ended and self._transport is not None:
            # It closed its side before it came to wait; see `eof_received`.
            self._closes, self._reader = True, None
            self._transport.close()
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_later(ask.wait_s, self._wait_is_over)
        changed = self._changed
        self._wait = (changed, timer, ask, member, closes, member.view.tag)
        self._is_busy = True
        self._hold_open()
        member.view.listen(changed)

    def _changed(self) -> None:
        if self._wait is not None:
            changed, _, ask, member, _, tag = self._wait
            if self._find(ask) is member and member.view.tag == tag:
                # It is another of his scope who left or moved.
                member.view.listen(changed)
                return
        self._release(is_changed=True)

    def _wait_is_over(self) -> None:
        self._release(is_changed=False)

    def _release(self, *, is_changed: bool) -> None:
        wait = self._wait
        if wait is None:
            return
        _, _, ask, member, closes, _ = wait
        self._stop_waiting()
        self._is_busy = False
        polls = self._service.polls
        if self._find(ask) is not member or member.view.activated_ms is None:
            # Gone, or his address is another's now, or the scope was switched off: ask anew.
            self._poll(ask, closes)
        elif is_changed:
            self._write(polls.document(ask, member, closes=closes), closes=closes)
        else:
            self._write(polls.not_modified(member.view, closes=closes), closes=closes)
        self._go_on()

    def _stop_waiting(self) -> None:
        if self._wait is not None:
            changed, timer, _, member, _, _ = self._wait
            self._wait = None
            timer.cancel()
            member.view.forget(changed)

    def _begin(self, work: Coroutine[object, object, None], *, ends_early: bool = False) -> None:
        self._is_busy = True
        self._hold_open()
        task = self._service.spawn(work)
        if ends_early:
            self._waiting = task
            task.add_done_callback(self._end_waiting)

    def _end_waiting(self, task: asyncio.Task[None]) -> None:
        if self._waiting is task:
            self._waiting = None

    async def _poll_after(
        self, needed: Coroutine[object, object, None], ask: Ask, member: Member, closes: bool
    ) -> None:
        """Answers a poll once what it needs is there: an activation, or a newer document."""
        try:
            await needed
        except StoreDown:
            self._finish(OUT_OF_SERVICE, closes)
            return
        except Exception:
            self._break()
            return
        self._is_busy = False
        self._waiting = None
        if self._find(ask) is not member:
            # It took a while, and his address is another's by now.
            self._poll(ask, closes)
            self._go_on()
            return
        ready = self._service.polls.answer(ask, member, closes=closes)
        if ready is not None:
            self._write(ready, closes=closes)
        elif member.view.activated_ms is not None:
            self._hold(ask, member, closes)
        else:
            self._send(OUT_OF_SERVICE, closes=closes)
        self._go_on()

    def _waits_no_more(self) -> None:
        """What has begun is done, even if its client leaves."""
        self._waiting = None

    async def _answer(self, ask: Ask, member: Member, body: bytes, closes: bool) -> None:
        try:
            answer = await self._service.endpoint.answer(ask, member, body, self._waits_no_more)
        except Exception:
            self._break()
            return
        self._finish(answer, closes)

    def _finish(self, answer: Answer, closes: bool) -> None:
        self._is_busy = False
        self._send(answer, closes=closes)
        self._go_on()

    def _refuse(self, answer: Answer) -> None:
        """The last word on this connection."""
        self._reader = None
        if not self._closes:
            self._send(answer, closes=True)

    def _send(self, answer: Answer, *, closes: bool, has_body: bool = True) -> None:
        closes = closes or answer.closes
        ready = to_bytes(answer, self._service.polls.stamp, closes=closes, has_body=has_body)
        self._write(ready, closes=closes)

    def _write(self, ready: bytes, closes: bool) -> None:
        self._has_answered = not self._is_full
        if self._transport is None:
            return
        self._transport.write(ready)
        if closes:
            self._closes = True
            self._reader = None
            self._transport.close()
        elif self._reader is not None:
            self._expect_request()

    def _expect_request(self) -> None:
        """A request has begun; unless we owe an answer, it must be whole before long."""
        if not self._is_busy:
            self._has_answered = False
            self._expires_s = time.monotonic() + REQUEST_S_MAX
