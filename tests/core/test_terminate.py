"""Terminate, rule by rule as Azure's page on terminate notification has them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.api_versions import VERSIONS
from fairwarning.core.commands import (
    Activate,
    Approve,
    ChangeModel,
    Operate,
    OperateAll,
    ReportDone,
    Schedule,
    Tick,
    UpgradeInstances,
)
from fairwarning.core.decide import decide
from fairwarning.core.document import render, visible_events
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import (
    EventType,
    InstanceName,
    NodeId,
    OperationKind,
    Phase,
    Policy,
    Priority,
    Scope,
    instance_actor,
)
from fairwarning.core.resources import Orchestration, ScaleSet, VirtualMachine, expand
from fairwarning.core.start_rules import why_waiting
from tests.core.builders import E1, E2, E3, T0, after, event_id, names, web, workers

DELETE = OperationKind.DELETE
TEN = ChangeModel(terminate_notice_ms=10 * MINUTE_MS)


def activated(resource: ScaleSet | VirtualMachine) -> Scope:
    (scope,) = expand(resource)
    return after(scope, Activate())


def flexible() -> Scope:
    suffixes = ("0a1b2c3d", "ffffffff", "12345678")
    return activated(
        ScaleSet(
            name="flex",
            capacity=3,
            orchestration=Orchestration.FLEXIBLE,
            suffixes=suffixes,
            addresses=("10.0.0.1", "10.0.0.2", "10.0.0.3"),
            terminate_notice_ms=5 * MINUTE_MS,
        )
    )


def first(scope: Scope) -> InstanceName:
    return scope.roster.live[0].name


def operate(scope: Scope, kind: OperationKind) -> Scope:
    return after(scope, Operate(event_id=E1, kind=kind, instance=first(scope)))


def delete_all(scope: Scope, *, at: Instant = T0) -> Scope:
    targets = tuple((event_id(n), each.name) for n, each in enumerate(scope.roster.live, start=1))
    return after(scope, OperateAll(kind=DELETE, targets=targets), at=at)


def approve(scope: Scope, number: int, *, at: Instant = T0) -> Scope:
    """By the instance that the event is about."""
    event = scope.events[event_id(number)]
    by = instance_actor(event.resources[0])
    return after(scope, Approve(event_id=event.id, by=by), at=at)


def phases(scope: Scope) -> list[Phase]:
    return [scope.events[each].phase for each in sorted(scope.events)]


@pytest.mark.parametrize("scope", [workers(), flexible()], ids=["uniform", "flexible"])
@pytest.mark.parametrize("kind", [each for each in OperationKind if each != "evict"])
def test_only_a_delete_raises_it(scope: Scope, kind: OperationKind) -> None:
    types = [each.type for each in visible_events(operate(scope, kind))]
    assert (EventType.TERMINATE in types) == (kind is DELETE)


def test_not_on_spot() -> None:
    spot = activated(ScaleSet(name="spot", capacity=1, priority=Priority.SPOT))
    assert not visible_events(operate(spot, DELETE))
    # Even a roster that an older version may have left must not announce one.
    known = spot.roster.live[0]
    noticed = replace(known, model=replace(known.model, terminate_notice_ms=5 * MINUTE_MS))
    spot = replace(spot, roster=replace(spot.roster, instances={known.name: noticed}))
    assert not visible_events(operate(spot, DELETE))


@pytest.mark.parametrize("scope", [web(), activated(VirtualMachine(name="db"))], ids=["set", "vm"])
def test_only_in_scale_sets(scope: Scope) -> None:
    deleted = operate(scope, DELETE)
    assert not visible_events(deleted)
    assert deleted.events[E1].phase is Phase.STARTED


def test_not_before_somebody_has_asked_for_the_document() -> None:
    idle = operate(workers(activated=False), DELETE)
    assert idle.events[E1].phase is Phase.STARTED
    assert not idle.events[E1].announced


@pytest.mark.parametrize("minutes", [5, 7, 15])
def test_the_timeout_is_that_of_the_model(minutes: int) -> None:
    scope = operate(workers(notice_ms=minutes * MINUTE_MS), DELETE)
    assert scope.events[E1].not_before_ms == T0 + minutes * MINUTE_MS


def test_one_that_a_test_fleet_schedules_has_the_timeout_of_the_model_too() -> None:
    scope = workers(notice_ms=10 * MINUTE_MS)
    scope = replace(scope, roster=replace(scope.roster, test=True))
    terminate = Schedule(event_id=E1, type=EventType.TERMINATE, targets=names("workers_0"))
    assert after(scope, terminate).events[E1].not_before_ms == T0 + 10 * MINUTE_MS
    shorter = replace(terminate, notice_ms=MINUTE_MS)
    assert after(scope, shorter).events[E1].not_before_ms == T0 + MINUTE_MS
    reboot = replace(terminate, type=EventType.REBOOT)
    assert after(scope, reboot).events[E1].not_before_ms == T0 + 15 * MINUTE_MS


def test_an_instance_that_was_not_upgraded_keeps_its_own_timeout() -> None:
    scope = after(workers(), TEN, UpgradeInstances(names=names("workers_1")))
    scope = delete_all(scope)
    notices = [each.not_before_ms - T0 for each in visible_events(scope)]
    assert notices == [5 * MINUTE_MS, 10 * MINUTE_MS, 5 * MINUTE_MS]


def test_an_instance_made_before_the_notice_was_enabled_gets_none_until_upgraded() -> None:
    scope = after(activated(ScaleSet(name="workers", capacity=2)), TEN)
    assert not visible_events(operate(scope, DELETE))
    scope = after(scope, UpgradeInstances(names=names("workers_0")))
    assert visible_events(operate(scope, DELETE))


def test_an_instance_made_while_it_was_enabled_gets_it_until_upgraded() -> None:
    scope = after(workers(), ChangeModel(terminate_notice_ms=None))
    assert visible_events(operate(scope, DELETE))
    scope = after(scope, UpgradeInstances(names=names("workers_0")))
    assert not visible_events(operate(scope, DELETE))


def test_it_can_be_enabled_again_after_it_was_disabled() -> None:
    everyone = UpgradeInstances(names=names("workers_0", "workers_1", "workers_2"))
    scope = after(workers(), ChangeModel(terminate_notice_ms=None), everyone, TEN, everyone)
    assert operate(scope, DELETE).events[E1].not_before_ms == T0 + 10 * MINUTE_MS


def test_a_change_of_the_timeout_does_not_move_what_is_announced() -> None:
    scope = operate(workers(), DELETE)
    scope = after(scope, TEN, UpgradeInstances(names=names("workers_0")))
    assert scope.events[E1].not_before_ms == T0 + 5 * MINUTE_MS


def test_it_is_seen_from_2019_01_01_on() -> None:
    scope = operate(workers(), DELETE)
    seen = [each.name for each in VERSIONS if json.loads(render(scope, each))["Events"]]
    assert seen == ["2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"]


def test_approving_deletes_at_once() -> None:
    scope = approve(operate(workers(), DELETE), 1)
    assert scope.events[E1].phase is Phase.STARTED


def test_at_the_timeout_it_is_deleted_and_no_earlier() -> None:
    scope = operate(workers(), DELETE)
    due = scope.events[E1].not_before_ms
    assert after(scope, Tick(), at=Instant(due - 1)).events[E1].phase is Phase.SCHEDULED
    assert after(scope, Tick(), at=due).events[E1].phase is Phase.STARTED


def test_deletes_at_once_have_the_same_not_before_and_wait_for_each_other() -> None:
    scope = delete_all(flexible())
    assert len({each.not_before_ms for each in visible_events(scope)}) == 1
    for number in (2, 1):
        scope = approve(scope, number)
        assert phases(scope) == [Phase.SCHEDULED] * 3
    assert phases(approve(scope, 3)) == [Phase.STARTED] * 3


def test_an_earlier_delete_that_nobody_approved_holds_a_later_one() -> None:
    scope = operate(workers(), DELETE)
    later = Instant(T0 + MINUTE_MS)
    scope = after(
        scope, Operate(event_id=E2, kind=DELETE, instance=InstanceName("workers_1")), at=later
    )
    scope = approve(scope, 2, at=later)
    assert phases(scope) == [Phase.SCHEDULED] * 2
    assert phases(approve(scope, 1, at=later)) == [Phase.STARTED] * 2
    due = scope.events[E1].not_before_ms
    assert phases(after(scope, Tick(), at=due)) == [Phase.STARTED] * 2


def test_one_that_is_due_and_blocked_does_not_let_others_pass_those_that_are_not_due() -> None:
    """workers_0 is busy when its time comes; workers_1, approved, still waits for workers_2."""
    busy = Operate(
        event_id=event_id(9), kind=OperationKind.STOP, instance=InstanceName("workers_0")
    )
    scope = after(operate(workers(), DELETE), busy)
    for number in (1, 2):
        delete = Operate(
            event_id=event_id(number + 1), kind=DELETE, instance=InstanceName(f"workers_{number}")
        )
        scope = after(scope, delete, at=Instant(T0 + number * MINUTE_MS))
    due = scope.events[E1].not_before_ms
    scope = approve(after(scope, Tick(), at=due), 2, at=due)
    assert [scope.events[each].phase for each in (E1, E2, E3)] == [Phase.SCHEDULED] * 3
    said = why_waiting(scope, scope.events[E2], due)
    assert said is not None
    assert E3 in said
    assert E1 not in said


def test_the_barrier_falls_at_its_time_also_if_what_it_waits_for_is_blocked() -> None:
    busy = Operate(
        event_id=event_id(9), kind=OperationKind.STOP, instance=InstanceName("workers_0")
    )
    delete = Operate(event_id=E2, kind=DELETE, instance=InstanceName("workers_1"))
    scope = after(operate(workers(), DELETE), busy)
    scope = approve(after(scope, delete, at=Instant(T0 + MINUTE_MS)), 2, at=Instant(T0 + MINUTE_MS))
    due = scope.events[E1].not_before_ms
    timing = Timing(lease_ms=HOUR_MS)
    ticked = decide(scope, Tick(), Instant(T0 + MINUTE_MS), timing=timing, node=NodeId("n1"))
    assert ticked.next_deadline_ms == due
    assert after(scope, Tick(), at=due).events[E2].phase is Phase.STARTED


def test_a_raised_minimum_holds_for_one_that_a_test_fleet_schedules() -> None:
    scope = workers()
    policy = Policy(notice_ms={EventType.TERMINATE: 20 * MINUTE_MS})
    scope = replace(scope, roster=replace(scope.roster, test=True, policy=policy))
    scope = after(
        scope, Schedule(event_id=E1, type=EventType.TERMINATE, targets=names("workers_0"))
    )
    assert scope.events[E1].not_before_ms == T0 + 20 * MINUTE_MS


@given(
    gaps=st.lists(st.integers(0, 4), min_size=2, max_size=4),
    approved=st.sets(st.integers(1, 4)),
)
def test_no_approved_delete_overtakes_one_that_is_unapproved_nor_waits_beyond_its_own_time(
    gaps: list[int], approved: set[int]
) -> None:
    scope, now = workers(4), T0
    for number, gap in enumerate(gaps):
        now = Instant(now + gap * MINUTE_MS // 4)
        name = InstanceName(f"workers_{number}")
        scope = after(
            scope, Operate(event_id=event_id(number + 1), kind=DELETE, instance=name), at=now
        )
    numbers = range(1, len(gaps) + 1)
    for number in sorted(approved.intersection(numbers)):
        scope = approve(scope, number, at=now)
    started = [each for each in scope.events.values() if each.phase is Phase.STARTED]
    assert len(started) == (len(gaps) if approved.issuperset(numbers) else 0)
    for number in approved.intersection(numbers):
        own = scope.events[event_id(number)].not_before_ms
        ticked = after(scope, Tick(), at=own)
        assert ticked.events[event_id(number)].phase is Phase.STARTED, "never beyond its own time"
    last = max(each.not_before_ms for each in scope.events.values())
    assert set(phases(after(scope, Tick(), at=last))) == {Phase.STARTED}


def test_then_the_instance_its_address_and_its_events_are_gone() -> None:
    scope = flexible()
    name = first(scope)
    reboot = Schedule(event_id=E3, type=EventType.REBOOT, targets=(name,))
    scope = approve(operate(after(scope, reboot), DELETE), 1)
    assert len(visible_events(scope)) == 2
    scope = after(scope, ReportDone(event_id=E1))
    assert not scope.roster.has_live(name)
    assert scope.roster.instances[name].addresses == ()
    assert not visible_events(scope)
    assert scope.events[E3].phase is Phase.CANCELLED


def test_each_deletion_changes_the_document_once() -> None:
    scope = delete_all(workers(2))
    scopes = [workers(2), scope]
    for number in (1, 2):
        scopes.append(approve(scopes[-1], number))
    for done in (E1, E2):
        scopes.append(decide(scopes[-1], ReportDone(event_id=done), T0).scope)
    steps = [now.incarnation - was.incarnation for was, now in pairwise(scopes)]
    assert steps == [1, 0, 1, 1, 1]
