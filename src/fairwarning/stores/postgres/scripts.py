"""Writes several statements as one text, sends it, and waits for the results of all.

psycopg's cursors do the same. They cost the client more work, because they look for placeholders in
each text anew, ask whether to prepare it, set a timer for each wait, and create several objects for
each result. So this module uses the layers below them: libpq, which quotes and sends, psycopg's
generator, which receives, and its transformer, which makes Python's values of the results.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any

import psycopg
from psycopg import AsyncConnection, generators
from psycopg.abc import PQGen, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import Escaping, ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

from fairwarning.stores.statements import Value

CANCEL_S_MAX = 1.0
"""How long a server is asked to end a statement for which nobody waits any more."""
_PLACEHOLDER = re.compile(rb"%(?:\((\w+)\)s|%)")
_Escape = Callable[[bytes], bytes]


def write_statement(pgconn: PGconn, text: bytes, values: Mapping[str, Value]) -> bytes:
    """Returns the statement with its values, quoted by libpq, in the place of `%(name)s`."""
    if not values:
        return text
    literals, names = _template(text)
    escape: _Escape = Escaping(pgconn).escape_literal
    pieces = [literals[0]]
    for name, literal in zip(names, literals[1:], strict=True):
        pieces.append(_quoted(escape, values[name]))
        pieces.append(literal)
    return b"".join(pieces)


@cache
def _template(text: bytes) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """Returns what stands around the placeholders of a statement, and their names."""
    literals, names = [b""], list[str]()
    at = 0
    for found in _PLACEHOLDER.finditer(text):
        literals[-1] += text[at : found.start()]
        at = found.end()
        if found[1] is None:
            literals[-1] += b"%"
        else:
            names.append(found[1].decode())
            literals.append(b"")
    literals[-1] += text[at:]
    return tuple(literals), tuple(names)


def _quoted(escape: _Escape, value: Value) -> bytes:
    if isinstance(value, str):
        # PostgreSQL cannot store NUL in text, so its symbol takes its place.
        return escape((value.replace("\0", "␀") if "\0" in value else value).encode())
    if value is None:
        return b"NULL"
    if isinstance(value, bool):
        return b"true" if value else b"false"
    # In front of a minus sign a space, because two of them would begin a comment.
    return b" %r" % value


async def run_script(connection: AsyncConnection[TupleRow], script: bytes) -> list[PGresult]:
    """Sends the statements in one message. Returns their results in order. Raises psycopg.Error if
    one has failed; then the server has skipped the rest and undone the transaction. If the caller
    is cancelled, the connection is closed, because results would still arrive on it.
    """
    connection.pgconn.send_query(script)
    try:
        results = await _wait(generators.execute(connection.pgconn), connection.pgconn.socket)
    except asyncio.CancelledError:
        try:
            with suppress(psycopg.Error):
                await connection.cancel_safe(timeout=CANCEL_S_MAX)
        finally:
            await connection.close()
        raise
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
    return results


async def _wait(receiving: PQGen[list[PGresult]], socket: int) -> list[PGresult]:
    """Drives psycopg's generator, which says for what it waits."""
    loop = asyncio.get_running_loop()
    try:
        wanted = next(receiving)
        while True:
            ready = loop.create_future()
            if wanted & Wait.R:
                loop.add_reader(socket, partial(_note, ready, Ready.R))
            if wanted & Wait.W:
                loop.add_writer(socket, partial(_note, ready, Ready.W))
            try:
                found = await ready
            finally:
                if wanted & Wait.R:
                    loop.remove_reader(socket)
                if wanted & Wait.W:
                    loop.remove_writer(socket)
            wanted = receiving.send(found)
    except StopIteration as end:
        results: list[PGresult] = end.value
        return results


def _note(ready: "asyncio.Future[Ready]", what: Ready) -> None:
    if not ready.done():
        ready.set_result(what)


def rows_of(transformer: Transformer, result: PGresult) -> list[Any]:
    """Returns the rows of a result as tuples. There are none if the statement returns no rows."""
    if not result.nfields:
        return []
    transformer.set_pgresult(result)
    rows: list[Any] = transformer.load_rows(0, result.ntuples, tuple)
    return rows
