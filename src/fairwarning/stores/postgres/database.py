"""Connections to the PostgreSQL server, with a limit on every wait, and batches of statements.

No call hangs, and an outage ends as soon as its cause ends. There is a time limit for connecting,
for each statement, for a client that is silent inside a transaction, and for a call as a whole. A
connection that has failed is not used again. If the server closes an idle connection, the socket
shows it, so the connection is replaced before use, without a question to the server.

psycopg_pool is not used, for two reasons. Its tasks wait longer and longer between attempts to
connect, while the callers wait too. And a task that is cancelled while it connects does not end.
"""

import asyncio
import re
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from typing import Any

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.types.string import TextLoader

from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.migrations import load_queries
from fairwarning.stores.statements import Statement, Value, refuse_taken

CONNECT_S_MAX = 5  # A server that can be reached answers much sooner.
CALL_S_MAX = 35.0
"""The limit of a call. That of a statement (`limit_session`) is lower: its error says more."""
_IDLE = TransactionStatus.IDLE
_INTRANS = TransactionStatus.INTRANS
_INERROR = TransactionStatus.INERROR
_DEFAULTS = {
    "connect_timeout": str(CONNECT_S_MAX),
    "application_name": "fairwarning",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}

Connection = AsyncConnection[TupleRow]
Results = Mapping[str, list[Any]]

QUERIES = {name: text.encode() for name, text in load_queries("postgres").items()}
BEGIN = Statement("begin", {})
COMMIT = Statement("commit", {})


def conninfo_of(dsn: str) -> str:
    """Returns the DSN with our defaults. Raises psycopg.ProgrammingError if it is no DSN."""
    return make_conninfo("", **{**_DEFAULTS, **conninfo_to_dict(dsn), "client_encoding": "UTF8"})


async def connect(conninfo: str, first: str) -> Connection:
    """Returns a new connection, after it ran the statement named `first`. Raises psycopg.Error."""
    connection = await AsyncConnection.connect(
        conninfo, autocommit=True, cursor_factory=AsyncClientCursor
    )
    # Bodies are decoded by our own codec, from text.
    connection.adapters.register_loader("json", TextLoader)
    try:
        await run(connection, [Statement(first, {})])
    except BaseException:
        await connection.close()
        raise
    return connection


class Database:
    """A pool in which a caller without a free connection opens one, and so learns of an outage."""

    def __init__(
        self, conninfo: str, connections_max: int, prepare: Callable[[Connection], Awaitable[None]]
    ) -> None:
        """`prepare` is called with each new connection, which may lead to another server."""
        self._conninfo = conninfo
        self._prepare = prepare
        self._free: list[Connection] = []
        self._places = asyncio.Semaphore(connections_max)

    async def close(self) -> None:
        """Closes the free connections. Call it only when no connection is in use."""
        free, self._free = self._free, []
        for connection in free:
            await connection.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lends a connection for a block, and at its end rolls back what is not committed. Raises
        Refused if a unique key is taken, and StoreDown at any other failure.
        """
        deadline = asyncio.timeout(CALL_S_MAX)
        try:
            async with deadline, self._places:
                connection = await self._take()
                try:
                    yield connection
                except psycopg.Error as error:
                    reason = explained(error)
                    if isinstance(reason, StoreDown):
                        await connection.close()
                    raise reason from error
                except asyncio.CancelledError:
                    # There is no time left for a rollback, so the connection is closed.
                    await connection.close()
                    raise
                finally:
                    await self._give_back(connection)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise StoreDown(
                f"PostgreSQL did not answer within {CALL_S_MAX:.0f} s; check that it still works, "
                "and that it is not overloaded"
            ) from error

    async def _take(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if not _has_gone(connection):
                return connection
            await connection.close()
        try:
            connection = await connect(self._conninfo, "limit_session")
            try:
                await self._prepare(connection)
            except BaseException:
                await connection.close()
                raise
        except psycopg.Error as error:
            raise explained(error) from error
        return connection

    async def _give_back(self, connection: Connection) -> None:
        # If the rollback fails, the connection is lost, and then the server rolls back by itself.
        with suppress(psycopg.Error):
            if connection.info.transaction_status in (_INTRANS, _INERROR):
                await connection.rollback()
        if connection.info.transaction_status == _IDLE:
            self._free.append(connection)
        else:
            await connection.close()


def _has_gone(connection: Connection) -> bool:
    """Returns whether the server has closed the idle connection, on which it sends nothing else."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


_ADDS = {"scopes_pkey": "add_scope", "addresses_pkey": "add_address", "events_pkey": "add_event"}
_KEY = re.compile(r"=\((.*)\)", re.DOTALL)
_ADVICE = {
    "08": "it cannot be reached, or broke off; check that it runs, and that host, database and "
    "user of the store's URL are right",
    "25006": "it is read-only, perhaps a standby; name the primary in the store's URL",
    "40": "it undid the transaction in favour of another; ask again",
    "42501": "the user may not do this; grant it the tables of its database",
    "53100": "its disk is full; free some space, and it goes on by itself",
    "53": "it is out of memory or connections; give it more, or use fewer",
    "55P03": "a lock was not free in time; ask again, and look for long transactions",
    "57014": "a statement took too long; ask again, and look for long transactions",
    "57P": "it is shutting down or starting; it goes on by itself once it is up",
    "XX": "its files are damaged; restore a backup",
}


def explained(error: psycopg.Error) -> Refused | StoreDown:
    """Returns Refused if a unique key is taken, and StoreDown with advice for any other error."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        # The message is in the server's language, but the key is always written (column)=(value).
        found = _KEY.search(error.diag.message_detail or "")
        try:
            refuse_taken(_ADDS.get(error.diag.constraint_name or "", ""), found[1] if found else "")
        except Refused as refusal:
            return refusal
    return StoreDown(f"cannot work with PostgreSQL: {_advice(error)}")


def _advice(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return "its URL cannot be understood; write one like postgresql://user@host/database"
    # An error has no SQLSTATE if it happens before there is a session.
    state = error.sqlstate or "08"
    for length in (5, 3, 2):
        if state[:length] in _ADVICE:
            return _ADVICE[state[:length]]
    return f"it refused a statement with SQLSTATE {state}: {error.diag.message_primary}"


async def run(connection: Connection, statements: Sequence[Statement]) -> Results:
    """Runs the statements in one message, so that a transaction takes two round trips, not nine.
    Returns their rows by statement name. Raises psycopg.Error.

    The values are quoted into the text by the rules of libpq (psycopg's client-side binding).
    psycopg's pipeline mode needs as few round trips, and keeps statements prepared. But it costs
    the client four times the work, because the client wakes up for every statement of the pipeline.

    The server runs the statements one after the other, and each of them sees all that is committed
    by then. If a statement fails, the server skips the rest and undoes the transaction.
    """
    if not statements:
        return {}
    cursor = AsyncClientCursor(connection)
    await cursor.execute(_script(cursor, statements))
    results: dict[str, list[Any]] = {}
    for statement in statements:
        # `description` would tell this too, but it creates an object for each column.
        has_rows = cursor.pgresult is not None and cursor.pgresult.nfields
        rows = results.setdefault(statement.name, [])
        if has_rows:
            rows += await cursor.fetchall()
        cursor.nextset()
    return results


def _script(cursor: AsyncClientCursor[TupleRow], statements: Sequence[Statement]) -> bytes:
    """Returns the SQL text of all statements, quoting neighbours with the same values together."""
    groups = groupby(statements, key=lambda statement: id(statement.values))
    return b";\n".join(_quoted(cursor, list(group)) for _, group in groups)


def _quoted(cursor: AsyncClientCursor[TupleRow], group: Sequence[Statement]) -> bytes:
    text = b";\n".join(QUERIES[statement.name] for statement in group)
    values = group[0].values
    return cursor.mogrify(text, _storable(values)).encode() if values else text


def _storable(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Replaces the NUL character by its symbol ␀, because PostgreSQL cannot store NUL in text."""
    if not any(isinstance(value, str) and "\0" in value for value in values.values()):
        return values
    return {
        name: value.replace("\0", "␀") if isinstance(value, str) else value
        for name, value in values.items()
    }
