"""Sends signals of commits to the other nodes, and receives theirs.

Theory of operation. `NOTIFY` inside a transaction would make all commits of the database wait for
each other. So one task sends the signals after the commits, on a connection of its own. Signals
that wait together go in one message. For each scope it has only the signal with the highest
revision, because commits may return to their callers in any order. Each node receives the signals
of all nodes and ignores its own, because its listeners were told directly after the commit.

A signal may be lost with a node or a connection. This causes only a delay, because a listener on a
shared store also polls from time to time. After an outage both tasks connect again by themselves,
and then the waiting signals are sent.

A pooler such as PgBouncer in transaction mode accepts LISTEN and then delivers nothing. So the node
sends signals without content from time to time, and must hear them itself. Until it does, the
journal is polled for commits of other nodes (`commit_poll.py`).
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress

import msgspec
import psycopg

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import Signal
from fairwarning.stores.listeners import Listeners
from fairwarning.stores.postgres.database import Connection, connect, run
from fairwarning.stores.postgres.errors import diagnose
from fairwarning.stores.statements import Statement

POLL_S = 0.2
"""How often the journal is polled while no signals arrive: soon, and still cheap for the server."""
PAYLOAD_BYTES_MAX = 7_999
"""The longest payload of NOTIFY that PostgreSQL accepts."""
PAUSE_S_MIN = 0.1  # A connection that broke is mostly there again at once.
PAUSE_S_MAX = 5.0
"""The pause before the next attempt to connect is doubled each time, from PAUSE_S_MIN to this."""
LAST_SEND_S_MAX = 1.0
"""How long `close` may take to send the signals that still wait."""
HEARD_S_MAX = 5.0
"""How long a test signal may take. A quick server needs milliseconds, but a machine may be busy."""
TEST_EVERY_S = 30.0  # Signals seldom stop, so a test now and then is enough.
CANCEL_AGAIN_S = 0.1  # Long enough for a task to end after the first cancellation.

_log = logging.getLogger(__name__)
_Line = tuple[ScopeId, Instant | None]
_decoder = msgspec.json.Decoder(tuple[str, list[_Line]])


class Signals:
    def __init__(self, conninfo: str, listeners: Listeners, direct: str | None = None) -> None:
        """`direct` is the conninfo for LISTEN if `conninfo` leads through a pooler."""
        self._listeners = listeners
        self._token = secrets.token_hex(8)
        self._waiting: dict[ScopeId, Signal] = {}
        self._has_waiting = asyncio.Event()
        self._is_test_wanted = False
        self._was_test_sent = asyncio.Event()
        self._was_heard = asyncio.Event()
        self._is_new = asyncio.Event()
        """Set when there is a new connection to receive signals on."""
        self.is_deaf = asyncio.Event()
        """Set until a test shows that signals arrive, and again after a test shows that they don't.
        """
        self.is_deaf.set()
        self.trouble = ""
        """Why no signals arrive, in words, if a test has shown it."""
        self._receiving = _Renewed(lambda: _listening(direct or conninfo))
        self._sending = _Renewed(lambda: connect(conninfo, "limit_session"))
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Connects and starts the tasks. All later signals of other nodes are received."""
        await self._receiving.make()
        self._tasks = [
            asyncio.create_task(self._receiving.keep(self._receive), name="signals received"),
            asyncio.create_task(self._sending.keep(self._send), name="signals sent"),
            asyncio.create_task(self._test(), name="signals tested"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            await end(task)
        if self._waiting:
            with suppress(psycopg.Error, TimeoutError):
                async with asyncio.timeout(LAST_SEND_S_MAX):
                    await self._send_waiting(await self._sending.make())
        for renewed in (self._receiving, self._sending):
            await renewed.drop()

    def publish(self, signals: Iterable[Signal]) -> None:
        for signal in signals:
            self._listeners.tell(signal)
            self._put(signal)
            self._has_waiting.set()

    async def _test(self) -> None:
        """Finds out again and again whether signals arrive, at once with each new connection."""
        while True:
            self._is_new.clear()
            self._was_heard.clear()
            self._was_test_sent.clear()
            self._is_test_wanted = True
            self._has_waiting.set()
            await self._was_test_sent.wait()
            was_heard = await _happens(self._was_heard, HEARD_S_MAX)
            if not was_heard and not self._is_new.is_set():
                self._note_silence()
            await _happens(self._is_new, TEST_EVERY_S)

    def _note_silence(self) -> None:
        if not self.trouble:
            self.trouble = (
                "LISTEN receives nothing, as through a pooler in transaction mode, so the database "
                f"is asked every {POLL_S} s what other nodes have changed; give --store-direct a "
                "URL that leads to PostgreSQL itself"
            )
            _log.warning("%s", self.trouble)
        self.is_deaf.set()

    def _note_heard(self) -> None:
        if self.trouble:
            _log.info("signals of other nodes arrive again")
        self.trouble = ""
        self._was_heard.set()
        self.is_deaf.clear()

    async def _receive(self, connection: Connection) -> None:
        self._is_new.set()
        try:
            async for notification in connection.notifies():
                self._hear(notification.payload)
        finally:
            self.is_deaf.set()

    def _hear(self, payload: str) -> None:
        try:
            token, lines = _decoder.decode(payload)
        except msgspec.DecodeError:
            _log.warning("not one of our signals, left out: %.100s", payload)
            return
        if token == self._token:
            self._note_heard()
        else:
            for scope_id, deadline in lines:
                self._listeners.tell(Signal(scope_id=scope_id, next_deadline_ms=deadline))

    async def _send(self, connection: Connection) -> None:
        while True:
            await self._has_waiting.wait()
            await self._send_waiting(connection)

    async def _send_waiting(self, connection: Connection) -> None:
        taken, self._waiting = self._waiting, {}
        is_test, self._is_test_wanted = self._is_test_wanted, False
        self._has_waiting.clear()
        lines = [(scope_id, signal.next_deadline_ms) for scope_id, signal in taken.items()]
        payloads = list(payloads_of(self._token, lines))
        if is_test and not payloads:
            payloads = [msgspec.json.encode((self._token, ())).decode()]
        statements = [Statement("notify", {"payload": payload}) for payload in payloads]
        try:
            await run(connection, statements)
        except BaseException:
            for signal in taken.values():
                self._put(signal)
            self._is_test_wanted |= is_test
            self._has_waiting.set()
            raise
        if is_test:
            self._was_test_sent.set()

    def _put(self, signal: Signal) -> None:
        known = self._waiting.get(signal.scope_id)
        if known is None or _revision(known) <= _revision(signal):
            self._waiting[signal.scope_id] = signal


def _revision(signal: Signal) -> int:
    """Returns the revision of the signal's scope, or 0 if the signal belongs to no scope."""
    return 0 if signal.scope is None else signal.scope.revision


def payloads_of(token: str, lines: Iterable[_Line]) -> Iterator[str]:
    """Packs the lines into payloads of at most PAYLOAD_BYTES_MAX, as few as possible."""
    frame = len(msgspec.json.encode((token, ())))
    size, taken = frame, list[_Line]()
    for line in lines:
        added = len(msgspec.json.encode(line)) + 1
        if taken and size + added > PAYLOAD_BYTES_MAX:
            yield msgspec.json.encode((token, taken)).decode()
            size, taken = frame, []
        size += added
        taken.append(line)
    if taken:
        yield msgspec.json.encode((token, taken)).decode()


async def _listening(conninfo: str) -> Connection:
    connection = await connect(conninfo, "limit_session")
    try:
        await run(connection, [Statement("listen", {})])
    except BaseException:
        await connection.close()
        raise
    return connection


async def _happens(event: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def end(task: asyncio.Task[None]) -> None:
    """Cancels the task until it ends, because Python 3.11 can lose a cancellation."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_AGAIN_S)


class _Renewed:
    """A connection that is opened again, after a pause, whenever it breaks."""

    def __init__(self, make: Callable[[], Awaitable[Connection]]) -> None:
        self._make = make
        self._connection: Connection | None = None

    async def make(self) -> Connection:
        if self._connection is None:
            self._connection = await self._make()
        return self._connection

    async def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def keep(self, use: Callable[[Connection], Awaitable[None]]) -> None:
        """Runs `use` with a connection for ever, until it is cancelled. Then call `drop`."""
        pause_s = PAUSE_S_MIN
        while True:
            try:
                connection = await self.make()
                pause_s = PAUSE_S_MIN
                await use(connection)
            except psycopg.Error as error:
                _log.warning("signals pause for %.1f s: %s", pause_s, diagnose(error).message)
            await self.drop()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
