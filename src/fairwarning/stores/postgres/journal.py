"""Reads the journal so that no entry is lost, although commits are not in order of numbers.

Theory of operation. The order is (xid, seq): the number of the transaction, then a sequence
within it. A sequence alone would lose entries, because a lower number may be committed after a
reader has read a higher one. Transactions may commit out of order too, but the server knows the
lowest one that is still under way (`pg_snapshot_xmin`). Entries from that number on are held back
until that transaction ends. So no entry can appear before one that a reader already has.

A transaction gets its number after it has entered the scope (`enter_scope`), so the entries of one
scope are numbered in the order of its revisions. The lock on the scope's row would not be enough: a
transaction that must wait for the row gets its number while it waits.

Every transaction that writes, in any database of the server, holds back entries until it ends.
Ours last milliseconds. A reader that finds only entries that are held back waits for them, because
no other signal will announce them. A long transaction of others only delays the readers. A reader
of the newest history also waits for entries that were committed before it asked, so that a caller
finds its own last change in the history.
"""

import asyncio

from fairwarning.core.model import EventId, ScopeId
from fairwarning.engine.protocols import Entry, Position
from fairwarning.stores.codec import Row, entry_of
from fairwarning.stores.postgres.database import Database, run
from fairwarning.stores.statements import Statement

HELD_PAUSES_S = tuple(0.002 * 2**number for number in range(9))
"""The pauses between attempts to read entries that are held back: about a second in all."""
NUMBER_MAX = 2**63 - 1  # The largest bigint of PostgreSQL.


async def read_page(
    database: Database,
    after: Position,
    scope_id: ScopeId | None,
    limit: int,
    *,
    inclusive: bool = False,
) -> list[Entry]:
    """Returns the entries after the position `after`, or from it on with `inclusive`. No entries
    mean the end of the journal, unless a slow transaction holds entries back.
    """
    xid, seq = _numbers_of(after)
    page = {"after_xid": xid, "after_seq": seq - inclusive, "scope_id": scope_id, "limit": limit}
    look = [
        # This comes first. Otherwise both answers would miss an entry released between them.
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
    """Waits until the entries that are held back now are released, but only about a second."""
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
