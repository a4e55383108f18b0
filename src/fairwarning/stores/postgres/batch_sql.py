"""Runs several statements in one message, so that a transaction takes two round trips, not nine.

The values are quoted into the text by the rules of libpq (psycopg's client-side binding).
psycopg's pipeline mode needs as few round trips, and keeps statements prepared. But it costs the
client four times the work, because the client wakes up for every statement of the pipeline.

The server runs the statements one after the other, and each of them sees all that is committed by
then. If a statement fails, the server skips the rest of the message and undoes the transaction.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.rows import TupleRow

from fairwarning.stores.migrations import load_queries
from fairwarning.stores.statements import Statement, Value

Connection = AsyncConnection[TupleRow]
Results = Mapping[str, list[Any]]

QUERIES = {name: text.encode() for name, text in load_queries("postgres").items()}
BEGIN = Statement("begin", {})
COMMIT = Statement("commit", {})


async def run(connection: Connection, statements: Sequence[Statement]) -> Results:
    """Runs the statements and returns their rows by statement name. Raises psycopg.Error."""
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
