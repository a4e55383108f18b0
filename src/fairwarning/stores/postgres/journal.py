"""Reads the journal as a feed that loses nothing, although commits are not in order of numbers.

Theory of operation. The order is (xid, seq): the number of the transaction, then a sequence
within it. A sequence alone would lose entries: a lower number may be committed after a
reader has passed it. Transactions may commit out of order too, but the server knows the
lowest that is still under way (`pg_snapshot_xmin`), and entries from there on are held back
until it has moved. So what a reader has passed is complete.

A transaction gets its number after it has entered the scope, so the entries of one scope
are numbered in the order of its revisions. The row lock alone would not do: under
contention a number is given while the wait for the row still goes on.

Any transaction that writes, in any database of the server, holds the feed back while it
lasts. Ours last milliseconds, and a reader that finds nothing but held entries waits for
them, because no further signal will announce them. A longer one only delays. A reader that
looks back from the end waits likewise for what was committed before its question, so that
a caller finds in the history what it has just done.
"""

import asyncio

from fairwarning.core.model import EventId, ScopeId
from fairwarning.engine.protocols import Entry, Position
from fairwarning.stores.postgres.batch_sql import run
from fairwarning.stores.postgres.database import Database
from fairwarning.stores.rows import Row, entry_of
from fairwarning.stores.statements import Statement

HELD_PAUSES_S = tuple(0.002 * 2**number for number in range(9))
"""The pauses between looks at entries that are held back, about a second in all."""
NUMBER_MAX = 2**63 - 1


async def read_page(
    database: Database,
    after: Position,
    scope_id: ScopeId | None,
    limit: int,
    *,
    inclusive: bool = False,
) -> list[Entry]:
    """Returns entries after `after`; none means the end, unless a transaction is very slow."""
    xid, seq = _numbers_of(after)
    page = {"after_xid": xid, "after_seq": seq - inclusive, "scope_id": scope_id, "limit": limit}
    look = [
        # This comes first, else an entry released in between would be in neither answer.
        Statement("has_entries_held", {"scope_id": scope_id}),
        Statement("journal", page),
    ]
    rows, are_held = await _look(database, look)
    for pause_s in HELD_PAUSES_S:
        has_more = any(row[0] != after for row in rows) or len(rows) >= limit
        if has_more or not are_held:
            break
        await asyncio.sleep(pause_s)
        rows, are_held = await _look(database, look)
    return [entry_of(row) for row in rows]


async def read_back(
    database: Database,
    before: Position | None,
    scope_id: ScopeId | None,
    event_id: EventId | None,
    limit: int,
) -> list[Entry]:
    filters = {"scope_id": scope_id, "event_id": event_id}
    xid, seq = (NUMBER_MAX, NUMBER_MAX) if before is None else _numbers_of(before)
    page = {**filters, "before_xid": xid, "before_seq": seq, "limit": limit}
    look = Statement("history", page)
    if before is None:
        await _settle(database, Statement("newest_held", filters))
    async with database.connection() as connection:
        rows = (await run(connection, [look]))["history"]
    return [entry_of(row) for row in rows]


async def _settle(database: Database, question: Statement) -> None:
    """Waits until what is held back now is released, unless a transaction is very slow."""
    async with database.connection() as connection:
        ((held,),) = (await run(connection, [question]))["newest_held"]
    if held is None:
        return
    for pause_s in HELD_PAUSES_S:
        await asyncio.sleep(pause_s)
        async with database.connection() as connection:
            answer = await run(connection, [Statement("is_let_go", {"xid": held})])
        if answer["is_let_go"][0][0]:
            return


async def _look(database: Database, look: list[Statement]) -> tuple[list[Row], bool]:
    async with database.connection() as connection:
        results = await run(connection, look)
    ((are_held,),) = results["has_entries_held"]
    return results["journal"], are_held


def _numbers_of(position: Position) -> tuple[int, int]:
    xid, _, seq = (position or "0-0").partition("-")
    return int(xid), int(seq)
