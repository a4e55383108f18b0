"""Connections to the PostgreSQL server, with a limit on every wait, and batches of statements.

No call hangs, and an outage ends as soon as its cause ends. There is a time limit for connecting,
for each statement, for a client that is silent inside a transaction, and for a call as a whole. A
connection that has failed is not used again. If the server closes an idle connection, the socket
shows it, so the connection is replaced before use, without a question to the server.

A connection may lead through a pooler such as PgBouncer, which gives each transaction to any of its
own connections. Then settings of the session are lost, so they are set in each transaction. What
the pooler says about the server may be old too: libpq would leave out a standby that has been
promoted since. So each host is asked whether it is the primary, and the next one is tried if not.

psycopg_pool is not used, for two reasons. Its tasks wait longer and longer between attempts to
connect, while the callers wait too. And a task that is cancelled while it connects does not end.
"""

import asyncio
import logging
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection, abc
from psycopg.adapt import Transformer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.types.string import TextLoader

from fairwarning.engine.protocols import SchemaTooNew, StoreDown
from fairwarning.stores.migrations import load_queries
from fairwarning.stores.postgres.errors import STANDBY_STATES, explained
from fairwarning.stores.postgres.scripts import rows_of, run_script, write_statement
from fairwarning.stores.statements import Statement

CONNECT_S_MAX = 5  # A server that can be reached answers much sooner.
CALL_S_MAX = 35.0
"""The limit of a call. That of a statement (`limit_session`) is lower: its error says more."""
_log = logging.getLogger(__name__)
_IDLE = TransactionStatus.IDLE
_INTRANS = TransactionStatus.INTRANS
_INERROR = TransactionStatus.INERROR
POOLED_S_MAX = 60.0
"""How long a connection through a pooler is used. The server behind it may have become another."""
APPLICATION = "fairwarning"
_DEFAULTS = {
    "connect_timeout": str(CONNECT_S_MAX),
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}


class Connection(AsyncConnection[TupleRow]):
    is_pooled = False
    """Whether a pooler is between us and the server."""
    opened_s = 0.0
    """When it was opened, by the event loop's clock."""
    transformer: abc.Transformer
    """It makes Python's values of results."""
    limits: Statement | None = None
    """What each transaction must begin with, because a pooler would lose it between them."""


Results = Mapping[str, list[Any]]

QUERIES = {name: text.encode() for name, text in load_queries("postgres").items()}
BEGIN = Statement("begin", {})
COMMIT = Statement("commit", {})


def conninfo_of(dsn: str, application: str = APPLICATION) -> str:
    """Returns the DSN with our defaults. Raises psycopg.ProgrammingError if it is no DSN."""
    defaults = {**_DEFAULTS, "application_name": application}
    return make_conninfo("", **{**defaults, **conninfo_to_dict(dsn), "client_encoding": "UTF8"})


_last_primary: dict[str, str] = {}
"""The host of each conninfo that was the primary last. It is tried first, because another host may
be so dead that each attempt lasts until the time limit."""


async def connect(conninfo: str, limits: str) -> Connection:
    """Returns a new connection to the primary, with the limits that the statement of this name
    sets. Raises psycopg.Error.
    """
    hosts = hosts_of(conninfo)
    if len(hosts) == 1:
        return await _connect_to(hosts[0], limits)
    last = _last_primary.get(conninfo)
    errors: list[psycopg.Error] = []
    for host in sorted(hosts, key=lambda each: each != last):
        try:
            connection = await _connect_to(host, limits)
        except psycopg.OperationalError as error:
            errors.append(error)
        else:
            _last_primary[conninfo] = host
            return connection
    raise psycopg.OperationalError("\n".join(map(str, errors))) from errors[-1]


def hosts_of(conninfo: str) -> list[str]:
    """Returns a conninfo for each host that this one names, as libpq understands them."""
    given = conninfo_to_dict(conninfo)
    lists = {
        name: str(given[name]).split(",")
        for name in ("host", "hostaddr", "port")
        if given.get(name) is not None
    }
    number = max((len(lists[name]) for name in ("host", "hostaddr") if name in lists), default=1)
    # One port is for all hosts.
    if len(lists.get("port", ())) == 1:
        lists["port"] *= number
    if number == 1 or any(len(values) != number for values in lists.values()):
        return [conninfo]
    return [
        make_conninfo(conninfo, **{name: values[at] for name, values in lists.items()})
        for at in range(number)
    ]


async def _connect_to(conninfo: str, limits: str) -> Connection:
    connection = await Connection.connect(
        conninfo, autocommit=True, cursor_factory=AsyncClientCursor
    )
    # Bodies are decoded by our own codec, from text.
    connection.adapters.register_loader("json", TextLoader)
    connection.transformer = Transformer(connection)
    connection.opened_s = asyncio.get_running_loop().time()
    try:
        ((pid, is_standby),) = (await run(connection, [Statement("backend", {})]))["backend"]
        if is_standby:
            raise psycopg.OperationalError("server is in hot standby mode")
        # A pooler invents the number that it gives to its clients.
        connection.is_pooled = pid != connection.info.backend_pid
        if connection.is_pooled:
            connection.limits = Statement(limits, {"is_local": True})
        else:
            await run(connection, [Statement(limits, {"is_local": False})])
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
        self._valid_from_s = float("-inf")
        """Connections that were opened before this time are not used again."""
        self._places = asyncio.Semaphore(connections_max)
        self._is_outdated = False

    async def close(self) -> None:
        """Closes the free connections. A connection in use stays open until it is given back."""
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
                    if isinstance(reason, SchemaTooNew):
                        self.log_outdated(reason)
                    elif isinstance(reason, StoreDown):
                        await connection.close()
                    if error.sqlstate in STANDBY_STATES:
                        # The others lead to the same server, where reads would still succeed.
                        await self._leave_server()
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

    def log_outdated(self, problem: SchemaTooNew) -> None:
        """Logs, the first time, that this node may no longer write to the database."""
        if not self._is_outdated:
            self._is_outdated = True
            _log.error("this node no longer writes, and goes on answering polls: %s", problem)

    async def _take(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if not self._is_used_up(connection) and not _has_gone(connection):
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
        is_idle = connection.info.transaction_status == _IDLE
        if is_idle and not self._is_used_up(connection):
            self._free.append(connection)
        else:
            await connection.close()

    def _is_used_up(self, connection: Connection) -> bool:
        if connection.opened_s < self._valid_from_s:
            return True
        age_s = asyncio.get_running_loop().time() - connection.opened_s
        return connection.is_pooled and age_s > POOLED_S_MAX

    async def _leave_server(self) -> None:
        """Stops using the connections that are open now, because the server is no longer the
        primary.
        """
        self._valid_from_s = asyncio.get_running_loop().time()
        await self.close()


def _has_gone(connection: Connection) -> bool:
    """Returns whether the server has closed the idle connection, on which it sends nothing else."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def run(connection: Connection, statements: Sequence[Statement]) -> Results:
    """Runs the statements in one message, so that a transaction takes two round trips, not nine.
    Returns their rows by statement name. Raises psycopg.Error.

    The values are quoted into the text by libpq. psycopg's pipeline mode needs as few round trips,
    and keeps statements prepared. But it costs the client four times the work, because the client
    wakes up for every statement of the pipeline.

    The server runs the statements one after the other, and each of them sees all that is committed
    by then. If a statement fails, the server skips the rest and undoes the transaction.
    """
    if not statements:
        return {}
    if connection.limits is not None and connection.info.transaction_status == _IDLE:
        # BEGIN must come first, because it refuses to set the isolation level later.
        after = 1 if statements[0].name == BEGIN.name else 0
        statements = [*statements[:after], connection.limits, *statements[after:]]
    script = b";\n".join(
        [write_statement(connection.pgconn, QUERIES[each.name], each.values) for each in statements]
    )
    results: dict[str, list[Any]] = {}
    for statement, result in zip(statements, await run_script(connection, script), strict=True):
        rows = rows_of(connection.transformer, result)
        found = results.setdefault(statement.name, rows)
        if found is not rows:
            found += rows
    return results
