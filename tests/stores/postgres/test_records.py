"""Records that several nodes want at once."""

import asyncio

from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import RecordChanged, Store
from fairwarning.stores.postgres import PostgresStore
from tests.stores.fleet import ME, whole_journal
from tests.stores.nodes import nodes, stranger

ROUNDS = 15


async def count_up(store: Store) -> None:
    """As often as it is first, with a line that says which revision it made."""
    won = 0
    while won < ROUNDS:
        record = await store.record("counter", "c")
        revision = 0 if record is None else record.revision
        note = Noted(subject="counter:c", action="raised", detail=str(revision + 1))
        try:
            await store.keep("counter", "c", "{}", expected=revision, note=note, by=ME)
            won += 1
        except RecordChanged:
            await asyncio.sleep(0)


async def test_the_history_of_a_record_is_in_the_order_of_its_revisions(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 4) as stores:
        await asyncio.gather(*(count_up(store) for store in stores))
        details = [
            entry.transition.detail
            for entry in await whole_journal(stores[0])
            if isinstance(entry.transition, Noted)
        ]
    assert details == [str(number + 1) for number in range(4 * ROUNDS)]


async def test_who_waits_for_a_record_gets_no_number_before_its_turn(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    """Else its line could come before that of the one it waited for."""
    await postgres.keep("token", "t", "{}", by=ME)
    async with stranger(postgres_dsn) as other:
        await other.execute("BEGIN")
        await other.execute("SELECT pg_advisory_xact_lock(hashtextextended('token/t', 2))")
        note = Noted(subject="token:t", action="changed")
        waiting = asyncio.create_task(postgres.keep("token", "t", "{}", note=note, by=ME))
        await other.wait_until_blocked()
        ((holder,),) = await other.execute("SELECT pg_current_xact_id()::text::bigint")
        await other.leave()
        await waiting
    (entry,) = await whole_journal(postgres)
    assert int(entry.position.partition("-")[0]) > holder
