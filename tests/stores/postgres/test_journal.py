"""Why a reader of the journal misses nothing, one cause at a time."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from fairwarning.core.model import ScopeId
from fairwarning.stores.postgres import PostgresStore, database, journal
from fairwarning.stores.postgres.database import Connection, Results
from fairwarning.stores.statements import Statement
from tests.stores.fleet import ME, declare, web, whole_journal
from tests.stores.nodes import Stranger, stranger
from tests.stores.steps import changing
from tests.support.patience import HANG_S


async def append(writer: Stranger, scope_id: ScopeId) -> None:
    """An entry as another node makes it, in a transaction that goes on."""
    await writer.execute("BEGIN")
    await writer.execute(
        "INSERT INTO journal "
        "(scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body) "
        "VALUES (%s, 99, 0, 'operator', 'slow', '', 'Activated', '{\"at_ms\": 0}')",
        scope_id,
    )


async def test_an_entry_waits_for_those_that_may_come_before_it(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await declare(postgres, web("quick"), web("slow"))
    after = (await whole_journal(postgres))[-1].position
    async with stranger(postgres_dsn) as slow:
        await append(slow, web("slow").id)
        await postgres.transact(id, changing, by=ME)
        with monkeypatch.context() as patch:
            patch.setattr(journal, "HELD_PAUSES_S", ())
            assert await postgres.journal(after=after, limit=10) == []
            assert await postgres.journal(after=after, scope_id=id, limit=10) == []
        await slow.leave()
    page = await postgres.journal(after=after, limit=10)
    assert [(entry.scope_id, entry.revision) for entry in page] == [(web("slow").id, 99), (id, 3)]


async def test_the_end_is_before_all_that_is_still_under_way(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    id = await declare(postgres, web("quick"), web("slow"))
    async with stranger(postgres_dsn) as slow:
        await append(slow, web("slow").id)
        await postgres.transact(id, changing, by=ME)
        end = await postgres.end()
        await slow.leave()
    page = await postgres.journal(after=end, limit=10)
    assert [(entry.scope_id, entry.revision) for entry in page] == [(web("slow").id, 99), (id, 3)]


async def test_a_reader_of_one_scope_does_not_wait_for_others(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await declare(postgres, web("mine"), web("other"))
    after = (await whole_journal(postgres))[-1].position
    monkeypatch.setattr(journal, "HELD_PAUSES_S", (2 * HANG_S,))
    async with stranger(postgres_dsn) as slow:
        await slow.execute("BEGIN")
        await slow.execute("SELECT pg_current_xact_id()")
        await postgres.transact(web("other").id, changing, by=ME)
        async with asyncio.timeout(HANG_S):
            assert await postgres.journal(after=after, scope_id=id, limit=10) == []
            assert len(await postgres.history(scope_id=id, limit=10)) == 2
        await slow.leave()


async def test_a_reader_waits_for_what_is_held_back(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    """Its signal was used up, so that nothing else would make the reader look again."""
    id = await declare(postgres, web())
    after = (await whole_journal(postgres))[-1].position
    async with stranger(postgres_dsn) as slow, stranger(postgres_dsn) as onlooker:
        await slow.execute("BEGIN")
        await slow.execute("SELECT pg_current_xact_id()")
        await postgres.transact(id, changing, by=ME)
        reading = asyncio.create_task(postgres.journal(after=after, limit=10))
        await onlooker.wait_until_looked()
        await slow.leave()
        assert [entry.revision for entry in await reading] == [3]


async def test_what_is_let_go_while_a_reader_looks_is_not_passed_over(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the question whether anything is held back and the one for the entries."""
    id = await declare(postgres, web())
    after = (await whole_journal(postgres))[-1].position
    async with stranger(postgres_dsn) as slow:
        await slow.execute("BEGIN")
        await slow.execute("SELECT pg_current_xact_id()")
        await postgres.transact(id, changing, by=ME)

        async def run_apart(connection: Connection, asked: Sequence[Statement]) -> Results:
            found: dict[str, list[Any]] = {}
            for statement in asked:
                found |= await database.run(connection, [statement])
                await slow.leave()
            return found

        monkeypatch.setattr(journal, "run", run_apart)
        assert [entry.revision for entry in await postgres.journal(after=after, limit=9)] == [3]


async def test_a_reader_waits_likewise_who_reads_from_an_entry_on(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That entry is always there, and says nothing about those behind it."""
    id = await declare(postgres, web())
    after = (await whole_journal(postgres))[-1].position
    async with stranger(postgres_dsn) as slow, stranger(postgres_dsn) as onlooker:
        await slow.execute("BEGIN")
        await slow.execute("SELECT pg_current_xact_id()")
        await postgres.transact(id, changing, by=ME)
        reading = asyncio.create_task(postgres.journal(after=after, limit=10, inclusive=True))
        await onlooker.wait_until_looked()
        with monkeypatch.context() as patch:
            patch.setattr(journal, "HELD_PAUSES_S", (2 * HANG_S,))
            async with asyncio.timeout(HANG_S):
                only = await postgres.journal(after=after, limit=1, inclusive=True)
        assert [entry.position for entry in only] == [after], "who wants no more does not wait"
        await slow.leave()
        assert [entry.revision for entry in await reading] == [2, 3]


async def test_a_restored_dump_goes_on_with_its_journal(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    """In a server whose transaction numbers are smaller than those in the journal."""
    id = await declare(postgres, web())
    await postgres.close()
    for round in range(3):
        if round < 2:  # And once more into a third server; then it only starts again.
            with psycopg.connect(postgres_dsn, autocommit=True) as connection:
                connection.execute("UPDATE journal SET xid = xid + 1000000000")
        await postgres.open()
        entries = await whole_journal(postgres)
        assert [each.revision for each in entries] == list(range(1, 3 + round))
        await postgres.transact(id, changing, by=ME)
        (new,) = await postgres.journal(after=entries[-1].position, limit=10)
        assert new.revision == 3 + round
        await postgres.close()
    await postgres.open()
