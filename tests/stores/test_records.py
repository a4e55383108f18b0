"""Records: small documents that change only as the writer expects, with a line of history."""

import asyncio

import pytest

from fairwarning.core.model import ScopeId
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Record, RecordChanged, Signal, Store
from tests.stores.fleet import ME, declare, vm, whole_journal

PAUSED = Noted(subject="rollout:r", action="paused", detail="until Monday")


async def test_what_is_kept_is_read_back(store: Store) -> None:
    assert await store.record("token", "a") is None
    body = '{"name": "ü \\u0000 \\"x\\"", "n":  1}'
    kept = await store.keep("token", "a", body, by=ME)
    assert kept == Record(kind="token", key="a", revision=1, body=body)
    assert await store.record("token", "a") == kept
    assert await store.record("rollout", "a") is None
    again = await store.keep("token", "a", "{}", by=ME)
    assert (again.revision, again.body) == (2, "{}")
    assert await store.record("token", "a") == again


async def test_a_record_changes_only_from_the_revision_that_is_expected(store: Store) -> None:
    with pytest.raises(RecordChanged, match="token 'a' was changed"):
        await store.keep("token", "a", "{}", expected=1, by=ME)
    assert await store.record("token", "a") is None
    await store.keep("token", "a", "1", expected=0, by=ME)
    for stale in (0, 2):
        with pytest.raises(RecordChanged):
            await store.keep("token", "a", "lost", expected=stale, note=PAUSED, by=ME)
    assert (await store.keep("token", "a", "2", expected=1, by=ME)).revision == 2
    assert await store.record("token", "a") == Record(kind="token", key="a", revision=2, body="2")
    assert await whole_journal(store) == []


async def test_of_many_who_expect_the_same_one_wins(store: Store) -> None:
    await store.keep("token", "a", "0", by=ME)
    results = await asyncio.gather(
        *(
            store.keep("token", "a", str(number), expected=1, note=PAUSED, by=ME)
            for number in range(8)
        ),
        return_exceptions=True,
    )
    (won,) = [each for each in results if isinstance(each, Record)]
    assert [each for each in results if not isinstance(each, Record | RecordChanged)] == []
    assert await store.record("token", "a") == won
    assert len(await whole_journal(store)) == 1


async def test_a_loser_takes_nobody_along(store: Store) -> None:
    """They may share a commit."""
    lost, won, created = await asyncio.gather(
        store.keep("token", "a", "{}", expected=7, note=PAUSED, by=ME),
        store.keep("token", "b", "{}", note=PAUSED, by=ME),
        store.create([vm("v")], by=ME),
        return_exceptions=True,
    )
    assert isinstance(lost, RecordChanged)
    assert isinstance(won, Record)
    assert created is None
    assert await store.record("token", "a") is None
    assert len(await whole_journal(store)) == 2


async def test_a_dropped_record_is_gone_and_begins_anew(store: Store) -> None:
    assert not await store.drop("token", "a", note=PAUSED, by=ME)
    assert not await store.drop("token", "a", expected=0, by=ME)
    assert await whole_journal(store) == []
    with pytest.raises(RecordChanged):
        await store.drop("token", "a", expected=1, by=ME)
    await store.keep("token", "a", "{}", by=ME)
    await store.keep("token", "a", "{}", by=ME)
    for stale in (0, 1):
        with pytest.raises(RecordChanged):
            await store.drop("token", "a", expected=stale, note=PAUSED, by=ME)
    assert await store.record("token", "a") is not None
    assert await store.drop("token", "a", expected=2, note=PAUSED, by=ME)
    assert await store.record("token", "a") is None
    assert len(await whole_journal(store)) == 1
    assert (await store.keep("token", "a", "{}", expected=0, by=ME)).revision == 1


async def test_records_are_listed_by_key_byte_by_byte(store: Store) -> None:
    keys = ["b", "B", "a-1", "a_1", "a.1", "Zz", "zz", "0", "é", "z", "🜚", "\uffee"]
    for key in keys:
        await store.keep("token", key, f'"{key}"', by=ME)
        await store.keep("other", key, "{}", by=ME)
    in_order = sorted(keys, key=str.encode)

    async def listed(after: str = "", until: str | None = None, limit: int = 100) -> list[str]:
        found = await store.records("token", after=after, until=until, limit=limit)
        assert {(each.kind, each.body) for each in found} <= {("token", f'"{k}"') for k in keys}
        return [each.key for each in found]

    assert await listed() == in_order
    assert await listed(limit=3) == in_order[:3]
    assert await listed(after=in_order[3], limit=4) == in_order[4:8]
    assert await listed(after=in_order[3], until=in_order[6]) == in_order[4:7]
    assert await listed(until="a") == [key for key in in_order if key <= "a"]
    assert await listed(after=in_order[-1]) == []
    assert await store.records("nothing", limit=10) == []


async def test_a_note_is_a_line_of_history_outside_all_scopes(
    store: Store, clock: VirtualClock
) -> None:
    id = await declare(store, vm("v"))
    before = await store.end()
    clock.step(5)
    await store.keep("rollout", "r", "{}", by=ME)
    await store.keep("rollout", "r", "{}", note=PAUSED, by=ME, why="it's snowing")
    removed = Noted(subject="rollout:r", action="removed")
    await store.drop("rollout", "r", note=removed, by=ME, why="it's over")
    first, second = await store.journal(after=before, limit=10)
    assert (first.scope_id, first.revision, first.at_ms) == ("", 0, clock.now())
    assert (first.by, first.why, first.transition) == (ME, "it's snowing", PAUSED)
    assert (second.scope_id, second.revision, second.at_ms) == ("", 0, clock.now())
    assert (second.by, second.why, second.transition) == (ME, "it's over", removed)
    assert await store.history(limit=2) == [second, first]
    assert first not in await whole_journal(store, id)


async def test_a_note_is_told_before_its_caller_knows(store: Store) -> None:
    told: list[Signal] = []
    store.listen(told.append)
    await store.keep("rollout", "r", "{}", by=ME)
    assert told == []
    await store.keep("rollout", "r", "{}", note=PAUSED, by=ME)
    outside = Signal(scope_id=ScopeId(""), next_deadline_ms=None)
    assert told == [outside]
    await store.drop("rollout", "r", note=PAUSED, by=ME)
    assert told == [outside, outside]
    await store.drop("rollout", "r", note=PAUSED, by=ME)
    assert told == [outside, outside]
