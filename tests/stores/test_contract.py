"""What every store promises about changes. Nothing in this file knows which one it is given."""

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import (
    Activate,
    AddInstances,
    Approve,
    Cancel,
    Command,
    Operate,
    OperateAll,
    Release,
    RenewLease,
    ReportDone,
    ReportDrained,
    ReportFailure,
    ReportSeen,
    Schedule,
    Tick,
)
from fairwarning.core.decide import Change
from fairwarning.core.instants import DAY_MS, MINUTE_MS, Instant, later
from fairwarning.core.lifecycle import fold
from fairwarning.core.limits import Timing
from fairwarning.core.model import (
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Phase,
    Scope,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import InstanceDeleted, InstancesAdded, Scheduled
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Due, Entry, Moment, Signal, Store
from tests.stores.fleet import (
    ME,
    NODE,
    deciding,
    declare,
    new_id,
    submit,
    vm,
    web,
    whole_journal,
    workers,
)

A, B = InstanceName("a"), InstanceName("b")


def reboot(target: str) -> Schedule:
    return Schedule(event_id=new_id(), type=EventType.REBOOT, targets=(InstanceName(target),))


async def everything(store: Store) -> tuple[list[Scope], list[Entry], Due]:
    """All that a change could leave a trace in."""
    scopes = [await store.read(id) for id in await store.scope_ids(limit=1_000)]
    return scopes, await whole_journal(store), await store.due(1_000)


async def test_a_declared_scope_is_there_as_declared(store: Store, clock: VirtualClock) -> None:
    declared = workers("w", "10.0.0.1", "10.0.0.2")
    await store.create([declared], by=ME, why="new rack")
    assert await store.read(declared.id) == replace(declared, revision=1)
    assert await store.locate("10.0.0.2") == (declared.id, "w_1")
    (entry,) = await whole_journal(store)
    assert (entry.scope_id, entry.revision, entry.at_ms) == (declared.id, 1, clock.now())
    assert (entry.by, entry.why) == (ME, "new rack")
    assert entry.transition == InstancesAdded(instances=tuple(declared.roster.instances.values()))


@pytest.mark.parametrize(
    ("late", "code"),
    [
        (vm("taken"), Code.SCOPE_EXISTS),
        (vm("new-1"), Code.SCOPE_EXISTS),
        (vm("other", "10.0.0.9"), Code.ADDRESS_IN_USE),
        (vm("other", "10.0.0.1"), Code.ADDRESS_IN_USE),
    ],
    ids=["id taken", "id twice", "address taken", "address twice"],
)
async def test_scopes_are_declared_all_or_none(store: Store, late: Scope, code: Code) -> None:
    await store.create([vm("taken", "10.0.0.9")], by=ME)
    before = await everything(store)
    with pytest.raises(Refused) as refused:
        await store.create([vm("new-1", "10.0.0.1"), vm("new-2"), late], by=ME)
    assert refused.value.code is code
    assert await everything(store) == before
    assert await store.locate("10.0.0.1") is None
    assert await store.locate("10.0.0.9") == (vm("taken").id, "taken")


async def test_a_receipt_is_what_is_stored(store: Store, clock: VirtualClock) -> None:
    id = await declare(store, web())
    clock.step(5)
    receipt = await store.transact(id, deciding(reboot("web-0"), node=NODE), by=ME, why="disk")
    assert receipt.scope == await store.read(id)
    assert (receipt.scope.revision, receipt.at_ms) == (3, clock.now())
    entries = [each for each in await whole_journal(store, id) if each.revision == 3]
    assert tuple(each.transition for each in entries) == receipt.transitions
    assert len(entries) > 1
    assert {(each.by, each.why, each.at_ms) for each in entries} == {(ME, "disk", clock.now())}


async def test_a_roster_is_stored_with_its_change(store: Store) -> None:
    id = await declare(store, web())
    receipt = await submit(store, id, AddInstances(instances=(Instance(name=A),)))
    assert A in receipt.scope.roster.instances
    assert await store.read(id) == receipt.scope


@pytest.mark.parametrize("error", [Refused(Code.NO_TARGET, "no"), ValueError("a bug"), KeyError(1)])
async def test_what_a_step_raises_comes_out_and_leaves_no_trace(
    store: Store, error: Exception
) -> None:
    id = await declare(store, web())
    before = await everything(store)

    def step(scope: Scope, moment: Moment) -> Change:
        raise error

    with pytest.raises(type(error)) as raised:
        await store.transact(id, step, by=ME)
    assert raised.value is error
    assert await everything(store) == before


async def test_an_event_id_is_used_once_in_the_whole_fleet(store: Store) -> None:
    """The scope's own row is written before the one that fails."""
    first = await declare(store, web("one"), web("two"))
    command = reboot("one-0")
    await submit(store, first, command)
    before = await everything(store)
    with pytest.raises(Refused) as refused:
        await submit(store, web("two").id, replace(command, targets=(InstanceName("two-0"),)))
    assert refused.value.code is Code.EVENT_ID_USED
    assert command.event_id in refused.value.message
    assert await everything(store) == before
    assert (await store.find_event(command.event_id))[0] == first


async def test_of_several_events_all_are_born_or_none(store: Store) -> None:
    """Some of the ids are free and are written before the one that fails."""
    first = await declare(store, web("one"), web("two"))
    command = reboot("one-0")
    await submit(store, first, command)
    before = await everything(store)
    ids = [new_id(), command.event_id, new_id()]
    targets = tuple(zip(ids, web("two").roster.instances, strict=False))
    stop = OperateAll(kind=OperationKind.STOP, targets=targets)
    with pytest.raises(Refused) as refused:
        await submit(store, web("two").id, stop)
    assert refused.value.code is Code.EVENT_ID_USED
    assert await everything(store) == before
    await submit(store, web("two").id, replace(stop, targets=(targets[0], targets[2])))
    for event_id, name in (targets[0], targets[2]):
        found, event = await store.find_event(event_id)
        assert (found, event.resources) == (web("two").id, (name,))


async def test_an_address_belongs_to_one_instance(store: Store) -> None:
    """Some of its addresses are free and are written before the one that fails."""
    id = await declare(store, web(), vm("other", "10.0.0.5"))
    before = await everything(store)
    wanted = ("10.0.0.4", "10.0.0.5", "10.0.0.6")
    with pytest.raises(Refused) as refused:
        await submit(store, id, AddInstances(instances=(Instance(name=A, addresses=wanted),)))
    assert refused.value.code is Code.ADDRESS_IN_USE
    assert "10.0.0.5" in refused.value.message
    assert await everything(store) == before
    assert await store.locate("10.0.0.4") is None
    assert await store.locate("10.0.0.5") == (vm("other").id, "other")


async def test_two_instances_of_one_scope_do_not_share_an_address(store: Store) -> None:
    id = await declare(store, web())
    before = await everything(store)
    two = tuple(Instance(name=name, addresses=("10.0.0.4",)) for name in (A, B))
    with pytest.raises(Refused) as refused:
        await submit(store, id, AddInstances(instances=two))
    assert refused.value.code is Code.ADDRESS_IN_USE
    assert await everything(store) == before


async def test_deleting_an_instance_frees_its_address(store: Store, clock: VirtualClock) -> None:
    id = await declare(store, workers("w", "10.0.0.1", "10.0.0.2"), web())
    target = InstanceName("w_0")
    delete = Operate(event_id=new_id(), kind=OperationKind.DELETE, instance=target)
    await submit(store, id, delete)
    clock.step(5 * MINUTE_MS)
    await submit(store, id, Tick())
    assert await store.locate("10.0.0.1") == (id, target)
    await submit(store, id, ReportDone(event_id=delete.event_id))
    assert await store.locate("10.0.0.1") is None
    heir = Instance(name=A, addresses=("10.0.0.1",))
    await submit(store, web().id, AddInstances(instances=(heir,)))
    assert await store.locate("10.0.0.1") == (web().id, A)


async def test_an_address_may_pass_on_within_a_change(store: Store, clock: VirtualClock) -> None:
    id = await declare(store, vm("old", "10.0.0.1", "10.0.0.2"))

    def step(scope: Scope, moment: Moment) -> Change:
        transitions = (
            InstanceDeleted(name=InstanceName("old"), at_ms=moment.now_ms),
            InstancesAdded(instances=(Instance(name=B, addresses=("10.0.0.2",)),)),
        )
        return Change(
            scope=fold(scope, transitions), transitions=transitions, next_deadline_ms=None
        )

    await store.transact(id, step, by=ME)
    assert await store.locate("10.0.0.1") is None
    assert await store.locate("10.0.0.2") == (id, B)


async def test_housekeeping_is_stored_and_is_no_history(store: Store, clock: VirtualClock) -> None:
    id = await declare(store, web())
    command = replace(reboot("web-0"), already_happened=True)
    started = await store.transact(id, deciding(command, node=NODE), by=ME)
    history = await whole_journal(store)
    clock.step(1_000)
    renewal = RenewLease(event_id=command.event_id, attempt=1, node=NODE)
    receipt = await submit(store, id, renewal)
    assert receipt.scope.revision == started.scope.revision + 1
    assert receipt.scope != started.scope
    assert await store.read(id) == receipt.scope
    assert await whole_journal(store) == history


async def test_a_finished_event_can_be_found_for_ever(store: Store, clock: VirtualClock) -> None:
    id = await declare(store, web())
    command = reboot("web-0")
    await submit(store, id, command)
    await submit(store, id, Cancel(event_id=command.event_id))
    clock.step(DAY_MS)
    receipt = await submit(store, id, Tick())
    assert command.event_id not in receipt.scope.events
    scope_id, event = await store.find_event(command.event_id)
    assert (scope_id, event.phase) == (id, Phase.CANCELLED)
    with pytest.raises(Refused) as refused:
        await submit(store, id, command)
    assert refused.value.code is Code.EVENT_ID_USED


async def test_an_event_may_end_and_be_forgotten_at_once(store: Store) -> None:
    id = await declare(store, web())
    command = reboot("web-0")
    await submit(store, id, command)
    step = deciding(Cancel(event_id=command.event_id), timing=Timing(retention_ms=0))
    receipt = await store.transact(id, step, by=ME)
    assert not receipt.scope.events
    assert await store.read(id) == receipt.scope
    assert (await store.find_event(command.event_id))[1].phase is Phase.CANCELLED


async def test_a_found_event_is_as_its_scope_has_it(store: Store) -> None:
    id = await declare(store, web())
    command = reboot("web-0")
    receipt = await submit(store, id, command)
    assert await store.find_event(command.event_id) == (id, receipt.scope.events[command.event_id])
    assert receipt.transitions[0] == Scheduled(event=receipt.scope.events[command.event_id])


async def test_a_found_event_is_as_its_scope_has_it_all_its_life(
    store: Store, clock: VirtualClock
) -> None:
    """Whatever happens to it; only the lease that a node renews is no part of its history."""
    id = await declare(store, web())
    web0, event_id = InstanceName("web-0"), new_id()
    schedule = Schedule(event_id=event_id, type=EventType.REBOOT, targets=(web0,))
    life: list[tuple[Command, int]] = [
        (schedule, 0),
        (ReportSeen(event_ids=(event_id,), instance=web0), 1),
        (ReportDrained(event_id=event_id, instance=web0), 1),
        (Approve(event_id=event_id, by=ME), 1),
        (ReportFailure(event_id=event_id, attempt=1, reason="no"), 1),
        (Tick(), 10 * MINUTE_MS),
        (Release(event_id=event_id, attempt=2, node=NODE), 1),
        (Tick(), 10 * MINUTE_MS),
        (ReportDone(event_id=event_id), 1),
    ]
    happened: set[str] = set()
    for command, after_ms in life:
        clock.step(after_ms)
        # Else what is given back would be taken again in the same turn.
        node = None if isinstance(command, Release) else NODE
        receipt = await store.transact(id, deciding(command, node=node), by=ME)
        happened |= {type(each).__name__ for each in receipt.transitions}
        assert await store.find_event(event_id) == (id, receipt.scope.events[event_id]), command
    on_event = {"Scheduled", "Seen", "Drained", "Approved", "Started", "HandedOver"}
    assert happened >= on_event | {"AttemptFailed", "AttemptLost", "Completed"}


async def test_a_change_of_nothing_moves_the_deadline_at_most(
    store: Store, clock: VirtualClock
) -> None:
    id = await declare(store, web())
    told: list[Signal] = []
    store.listen(told.append)
    history = await whole_journal(store)
    before = await store.read(id)

    async def idle_until(deadline: Instant | None) -> None:
        def step(scope: Scope, moment: Moment) -> Change:
            return Change(scope=scope, transitions=(), next_deadline_ms=deadline)

        receipt = await store.transact(id, step, by=ME)
        assert receipt.transitions == ()
        assert receipt.scope == before == await store.read(id)
        assert (await store.due(1)).next_deadline_ms == deadline

    ahead = later(clock.now(), 1_000)
    for deadline in (ahead, ahead, None, None, ahead):
        await idle_until(deadline)
    assert await whole_journal(store) == history
    assert not told


async def test_each_commit_is_told_before_its_caller_knows(
    store: Store, clock: VirtualClock
) -> None:
    told: list[Signal] = []
    store.listen(told.append)
    await store.create([web("one"), web("two")], by=ME)
    created = [web("one").id, web("two").id]
    assert told == [
        Signal(scope_id=id, next_deadline_ms=None, scope=await store.read(id)) for id in created
    ]
    told.clear()
    await submit(store, created[0], Activate())
    command = reboot("one-0")
    receipt = await submit(store, created[0], command)
    deadline = receipt.scope.events[command.event_id].not_before_ms
    assert [each.scope_id for each in told] == [created[0], created[0]]
    assert told[-1].next_deadline_ms == deadline == (await store.due(1)).next_deadline_ms
    assert told[-1].scope == receipt.scope
    with pytest.raises(Refused):
        await submit(store, created[0], command)
    assert len(told) == 2


async def test_any_text_can_be_a_reason(store: Store) -> None:
    id = await declare(store, web())
    why = 'it\'s "bad" \\ %s %(id)s :id ; DROP TABLE scopes; -- ü 🜚\n'
    command = replace(reboot("web-0"), description=why + "\0")
    receipt = await store.transact(id, deciding(command), by=ME, why=why)
    assert (await whole_journal(store))[-1].why == why
    assert await store.read(id) == receipt.scope
    assert receipt.scope.events[command.event_id].description.endswith("\0")
    await store.transact(id, deciding(reboot("web-1")), by=ME, why="nul\0")
    assert (await whole_journal(store))[-1].why in {"nul\0", "nul␀"}
