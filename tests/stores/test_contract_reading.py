"""What every store promises to those who look: due scopes, notes, lists and the journal."""

import pytest

from fairwarning.core.commands import Schedule, Tick
from fairwarning.core.decide import Change
from fairwarning.core.instants import DAY_MS, Instant
from fairwarning.core.model import EventType, InstanceName, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import START, Moment, Position, Store
from tests.stores.fleet import ME, deciding, declare, new_id, submit, vm, web, whole_journal
from tests.stores.steps import changing


async def set_deadline(store: Store, id: ScopeId, deadline: Instant | None) -> None:
    def step(scope: Scope, moment: Moment) -> Change:
        return Change(scope=scope, transitions=(), next_deadline_ms=deadline)

    await store.transact(id, step, by=ME)


async def test_due_scopes_come_most_overdue_first(store: Store, clock: VirtualClock) -> None:
    start = clock.now()
    deadlines = {"a": 50, "b": 20, "c": 20, "d": 70, "e": None, "Z": 20}
    await store.create([vm(name) for name in deadlines], by=ME)
    for name, after_ms in deadlines.items():
        deadline = None if after_ms is None else Instant(start + after_ms)
        await set_deadline(store, vm(name).id, deadline)

    async def due(at_ms: int, limit: int = 10) -> tuple[list[str], int | None]:
        clock.step(start + at_ms - clock.now())
        found = await store.due(limit)
        assert found.now_ms == clock.now()
        ahead = found.next_deadline_ms
        return [id.rpartition("/")[2] for id in found.scope_ids], ahead and ahead - start

    assert await due(19) == ([], 20)
    assert await due(20) == (["Z", "b", "c"], 50)
    assert await due(21) == (["Z", "b", "c"], 50)
    assert await due(60) == (["Z", "b", "c", "a"], 70)
    assert await due(60, limit=2) == (["Z", "b"], 70)
    assert await due(70) == (["Z", "b", "c", "a", "d"], None)


async def test_nothing_is_due_in_an_empty_store(store: Store, clock: VirtualClock) -> None:
    due = await store.due(10)
    assert (due.now_ms, due.scope_ids, due.next_deadline_ms) == (clock.now(), (), None)


async def test_a_note_only_raises_the_time(store: Store, clock: VirtualClock) -> None:
    await store.create([web()], by=ME)
    id, now = web().id, clock.now()
    await store.note_seen({})
    for noted, expected in ((5, 5), (3, 5), (9, 9), (9, 9)):
        await store.note_seen({id: Instant(now + noted), ScopeId("nobody"): now})
        assert (await store.read(id)).last_seen_ms == now + expected
    assert (await store.read(id)).revision == 1
    assert len(await whole_journal(store)) == 1


async def test_many_notes_at_once(store: Store, clock: VirtualClock) -> None:
    scopes = [vm(f"v{number}") for number in range(250)]
    await store.create(scopes, by=ME)
    await store.note_seen({scope.id: clock.now() for scope in reversed(scopes)})
    for scope in scopes:
        assert (await store.read(scope.id)).last_seen_ms == clock.now()


async def test_a_step_sees_the_latest_note(store: Store, clock: VirtualClock) -> None:
    id = await declare(store, web())
    seen = Instant(clock.now() + DAY_MS)
    await store.note_seen({id: seen})
    command = Schedule(event_id=new_id(), type=EventType.REBOOT, targets=(InstanceName("web-0"),))
    assert (await submit(store, id, command)).scope.last_seen_ms == seen
    assert (await store.read(id)).last_seen_ms == seen


async def test_the_fleet_can_be_paged_through(store: Store) -> None:
    names = ["b", "B", "a-1", "a_1", "a.1", "Zz", "zz", "0"]
    await store.create([vm(name) for name in names], by=ME)
    found: list[ScopeId] = []
    after: ScopeId | None = None
    while page := await store.scope_ids(after=after, limit=3):
        assert len(page) <= 3
        found += page
        after = page[-1]
    assert found == sorted(vm(name).id for name in names)
    some = await store.scopes(after=found[1], limit=4)
    assert some == [await store.read(id) for id in found[2:6]]
    assert [scope.id for scope in await store.scopes(limit=100)] == found
    assert await store.scopes(after=found[-1], limit=100) == []


async def test_the_journal_can_be_paged_through(store: Store, clock: VirtualClock) -> None:
    one = await declare(store, web("one"), web("two"))
    for number in range(4):
        for name in ("one", "two"):
            clock.step(1)
            target = (InstanceName(f"{name}-{number}"),)
            command = Schedule(event_id=new_id(), type=EventType.REBOOT, targets=target)
            await store.transact(web(name).id, deciding(command), by=ME, why=name)
    entries = await whole_journal(store)
    assert len({each.position for each in entries}) == len(entries)
    assert [each.at_ms for each in entries] == sorted(each.at_ms for each in entries)
    for scope_id in (None, one):
        chosen = [each for each in entries if scope_id in {None, each.scope_id}]
        for first in range(len(chosen)):
            after = chosen[first - 1].position if first else START
            page = await store.journal(after=after, scope_id=scope_id, limit=2)
            assert page == chosen[first : first + 2]
        assert await store.journal(after=chosen[-1].position, scope_id=scope_id, limit=2) == []


async def test_the_journal_can_be_read_from_an_entry_on(store: Store) -> None:
    id = await declare(store, web("one"), web("two"))
    for _ in range(3):
        await store.transact(id, changing, by=ME)
    entries = await whole_journal(store)
    for number, entry in enumerate(entries):
        page = await store.journal(after=entry.position, limit=2, inclusive=True)
        assert page == entries[number : number + 2]
        only = await store.journal(after=entry.position, scope_id=id, limit=1, inclusive=True)
        assert only == [each for each in entries[number:] if each.scope_id == id][:1]
    assert await store.journal(after=START, limit=1, inclusive=True) == entries[:1]
    end = await store.end()
    assert await store.journal(after=end, limit=9, inclusive=True) in ([], entries[-1:])


async def test_a_position_of_nowhere_is_a_mistake(store: Store) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await store.journal(after=Position("nowhere"), limit=1)


async def test_unknown_things_are_refused(store: Store) -> None:
    await declare(store, web())
    for unknown in ("nobody", "", "nul\0", "é"):
        with pytest.raises(Refused) as refused:
            await store.read(ScopeId(unknown))
        assert refused.value.code is Code.UNKNOWN_SCOPE
        for skip_busy in (False, True):
            step = deciding(Tick())
            with pytest.raises(Refused) as refused:
                await store.transact(ScopeId(unknown), step, by=ME, skip_busy=skip_busy)
            assert refused.value.code is Code.UNKNOWN_SCOPE
        assert await store.locate(unknown) is None
        assert await store.journal(scope_id=ScopeId(unknown), limit=10) == []
    with pytest.raises(Refused) as refused:
        await store.find_event(new_id())
    assert refused.value.code is Code.UNKNOWN_EVENT
