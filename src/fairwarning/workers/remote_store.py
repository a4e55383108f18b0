"""A worker reaches the store and the engine through the engine's process.

The connection is made again whenever it ends, because the engine's process may be restarted. Until
then every call raises StoreDown, and the worker shows the documents that it has.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from fairwarning.core.commands import Command
from fairwarning.core.model import Actor, Event, EventId, Scope, ScopeId
from fairwarning.engine.protocols import START, Entry, Listener, Position, Receipt, StoreDown
from fairwarning.workers import messages as m
from fairwarning.workers.messages import Frame, Kind

RETRY_S = 0.05  # A restarted process listens soon, and a failed attempt costs little.
CALL_S_MAX = 30.0
"""How long a call may take. The engine's process gives up its own waits for the store earlier."""

PATIENCE_S = 5.0
"""How long a call waits for the engine's process, which is restarted in less time."""
_AWAY = "the engine's process cannot be reached; it is being restarted"

A = TypeVar("A")
R = TypeVar("R")
_log = logging.getLogger(__name__)


class _LinkLost(Exception):
    """The connection has ended, or there is none. A call may have been carried out or not."""


class EngineLink:
    """The connection to the engine's process."""

    def __init__(self, path: str, hello: m.Hello) -> None:
        self._path = path
        self._hello = hello
        self._writer: asyncio.StreamWriter | None = None
        self._is_connected = asyncio.Event()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._hear: dict[str, Callable[[Frame], None]] = {}
        self.on_connected: Callable[[], Awaitable[None]] | None = None
        """A coroutine function that is run after each connection, while news already arrive."""
        self._running: asyncio.Task[None] | None = None
        self.away_since_s: float | None = None
        """Since when the engine's process cannot be reached, by the event loop's clock, or None."""

    def hear(self, news: m.News[A], listener: Callable[[A], None]) -> None:
        self._hear[news.name] = lambda frame: listener(news.content.decode(frame.body))

    def start(self) -> None:
        self.away_since_s = asyncio.get_running_loop().time()
        self._running = asyncio.create_task(self._run(), name="link to the engine")

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def call(self, call: m.Call[A, R], argument: A) -> R:
        """Call the engine's process. Raises StoreDown if it cannot be reached, or as it raised.

        A call is made again if the connection ends before the answer, because the engine's process
        may just be restarted. Every call may be made twice.
        """
        body = m.encode(argument)
        until_s = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            await self._connected(until_s)
            try:
                frame = await self._exchange(call.name, body)
            except _LinkLost:
                if asyncio.get_running_loop().time() >= until_s:
                    raise StoreDown(_AWAY) from None
                await asyncio.sleep(RETRY_S)
                continue
            if frame.kind is not Kind.ANSWER:
                raise m.raised_by(frame)
            result: R = call.result.decode(frame.body)
            return result

    async def _connected(self, until_s: float) -> None:
        """Return when there is a connection. Raises StoreDown if there is none for too long."""
        is_away = self.away_since_s is not None and self.away_since_s + PATIENCE_S
        if self._writer is None and is_away and is_away < asyncio.get_running_loop().time():
            raise StoreDown(_AWAY)
        try:
            async with asyncio.timeout_at(until_s):
                await self._is_connected.wait()
        except TimeoutError:
            raise StoreDown(_AWAY) from None

    async def _exchange(self, name: str, body: bytes) -> Frame:
        """Send a call and return its answer. Raises _LinkLost, or StoreDown after CALL_S_MAX."""
        number = next(self._numbers)
        answered: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._send(Frame(Kind.CALL, name, number, body))
        self._waiting[number] = answered
        try:
            async with asyncio.timeout(CALL_S_MAX):
                return await answered
        except TimeoutError:
            raise StoreDown("the engine's process does not answer") from None
        finally:
            del self._waiting[number]

    def tell(self, news: m.News[A], content: A) -> None:
        """Send news. They are lost if the engine's process cannot be reached."""
        with suppress(_LinkLost):
            self._send(Frame(Kind.NEWS, news.name, body=m.encode(content)))

    def _send(self, frame: Frame) -> None:
        if self._writer is None or self._writer.transport.is_closing():
            raise _LinkLost
        self._writer.write(m.to_bytes(frame))

    async def _run(self) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(self._path)
            except OSError:
                await asyncio.sleep(RETRY_S)
                continue
            await self._talk(reader, writer)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._is_connected.set()
        self.tell(m.HELLO, self._hello)
        catching_up = asyncio.create_task(self._catch_up(), name="reading all scopes")
        try:
            while (frame := await m.receive(reader)) is not None:
                self._take(frame)
        finally:
            self._writer = None
            self._is_connected.clear()
            if self.away_since_s is None:
                self.away_since_s = asyncio.get_running_loop().time()
            catching_up.cancel()
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(_LinkLost())
            writer.close()
            await asyncio.gather(catching_up, return_exceptions=True)

    async def _catch_up(self) -> None:
        """Run `on_connected` until it succeeds, because the store may be down, too."""
        while True:
            try:
                if self.on_connected is not None:
                    await self.on_connected()
                self.away_since_s = None
                return
            except StoreDown as outage:
                _log.info("waiting for the store: %s", outage)
            except Exception:
                _log.exception("could not read the scopes, trying again")
            await asyncio.sleep(1)

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.NEWS:
            self._hear[frame.name](frame)
            return
        answered = self._waiting.get(frame.number)
        if answered is not None and not answered.done():
            answered.set_result(frame)


class RemoteStore:
    """The store as a worker sees it: what a node needs to show documents."""

    is_shared = True

    def __init__(self, link: EngineLink) -> None:
        self._link = link

    def listen(self, listener: Listener) -> None:
        """Do nothing. The engine's process sends changed scopes itself."""

    async def read(self, scope_id: ScopeId) -> Scope:
        return await self._link.call(m.READ, scope_id)

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        return await self._link.call(m.SCOPES, m.PageAfter(after, limit))

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        return await self._link.call(m.FIND_EVENT, event_id)

    async def journal(
        self,
        *,
        after: Position = START,
        scope_id: ScopeId | None = None,
        limit: int,
        inclusive: bool = False,
    ) -> list[Entry]:
        assert scope_id is None, "a worker reads the whole journal only"
        page = await self._link.call(m.JOURNAL, m.JournalPage(after, limit, inclusive))
        return [each.entry() for each in page]

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        assert scope_id is None, "a worker reads the whole journal only"
        assert event_id is None, "a worker reads the whole journal only"
        page = await self._link.call(m.HISTORY, m.JournalPage(before, limit))
        return [each.entry() for each in page]


class RemoteEngine:
    """The engine as a worker sees it."""

    def __init__(self, link: EngineLink) -> None:
        self._link = link
        self.on_receipt: Callable[[Receipt], None] = lambda _: None
        """A function that is called with the receipt of each command, before its caller."""

    async def submit(
        self, scope_id: ScopeId, command: Command, *, by: Actor, why: str = ""
    ) -> Receipt:
        """Carry out and store the command. Raises Refused or StoreDown. The transitions of the
        receipt are empty, because a worker needs only the scope.
        """
        assert not why, "instances give no reason"
        done = await self._link.call(m.SUBMIT, m.submission(scope_id, command, by))
        receipt = Receipt(scope=done.scope, at_ms=done.at_ms, transitions=())
        self.on_receipt(receipt)
        return receipt

    async def check_past(self) -> None:
        await self._link.call(m.CHECK_PAST, None)
