"""What owners ask of their instances: who is told, what it leaves behind, how much at once."""

import json

import pytest

from fairwarning.core.api_versions import VERSIONS
from fairwarning.core.commands import (
    Approve,
    ChangeModel,
    ChangePolicy,
    Command,
    Operate,
    OperateAll,
    ReportDone,
    ReportFailure,
    ReportPower,
    Schedule,
    UpgradeInstances,
)
from fairwarning.core.decide import decide
from fairwarning.core.document import render
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.limits import (
    Timing,
    is_counted,
    pending_operations,
    refuse_over_limit,
)
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    NodeId,
    OperationKind,
    Phase,
    Policy,
    Power,
    Scope,
    Source,
    operator_actor,
)
from fairwarning.core.refusals import Code, Refused
from tests.core.builders import E1, E2, E3, T0, after, event_id, names, web, workers

POWER = [OperationKind.START, OperationKind.STOP, OperationKind.DEALLOCATE]
WORKER = InstanceName("workers_0")
ME = operator_actor("me")
NOTICE = ChangeModel(
    terminate_notice_ms=5 * MINUTE_MS, reimage_notice_ms=15 * MINUTE_MS, profile="image 1"
)


def operate(kind: OperationKind, name: str = "workers_0", id: EventId = E1) -> Operate:
    return Operate(event_id=id, kind=kind, instance=InstanceName(name))


def batch(kind: OperationKind, *targets: str, first: int = 1) -> OperateAll:
    ids = (event_id(number) for number in range(first, first + len(targets)))
    return OperateAll(kind=kind, targets=tuple(zip(ids, names(*targets), strict=True)))


@pytest.mark.parametrize(
    "command",
    [operate(OperationKind.RESTART), batch(OperationKind.RESTART, "workers_0")],
    ids=["one", "several"],
)
def test_after_a_day_of_silence_it_runs_unannounced_even_if_no_tick_came(command: Command) -> None:
    scope = after(workers(), command, at=Instant(T0 + 2 * DAY_MS))
    assert not scope.is_activated
    assert not scope.events[E1].announced
    assert scope.events[E1].phase is Phase.STARTED


def with_reimage_notice() -> Scope:
    everyone = UpgradeInstances(names=names("workers_0", "workers_1", "workers_2"))
    return after(workers(), NOTICE, everyone)


def shown(scope: Scope) -> list[dict[str, object]]:
    events: list[dict[str, object]] = json.loads(render(scope, VERSIONS[-1]))["Events"]
    return events


@pytest.mark.parametrize(
    ("kind", "power"),
    [
        (OperationKind.STOP, Power.STOPPED),
        (OperationKind.DEALLOCATE, Power.DEALLOCATED),
        (OperationKind.START, Power.RUNNING),
    ],
)
def test_power_changes_once_the_driver_is_done(kind: OperationKind, power: Power) -> None:
    before = Power.STOPPED if kind is OperationKind.START else Power.RUNNING
    scope = after(workers(), ReportPower(instance=WORKER, power=before), operate(kind))
    assert scope.roster.instances[WORKER].power is before
    scope = after(scope, ReportDone(event_id=E1))
    assert scope.roster.instances[WORKER].power is power
    others = [each.power for each in scope.roster.live if each.name != WORKER]
    assert others == [Power.RUNNING, Power.RUNNING]


@pytest.mark.parametrize("kind", POWER)
def test_a_change_of_power_runs_at_once_and_nobody_sees_it(kind: OperationKind) -> None:
    before = workers()
    scope = after(before, operate(kind))
    event = scope.events[E1]
    assert (event.type, event.source, event.phase) == (
        EventType.POWER,
        Source.USER,
        Phase.STARTED,
    )
    assert not event.announced
    assert scope.incarnation == before.incarnation
    assert all(b"Power" not in render(scope, version) for version in VERSIONS)


def test_a_stop_that_fails_leaves_the_power_as_it_was() -> None:
    timing = Timing(attempts_max=1)
    scope = decide(workers(), operate(OperationKind.STOP), T0, node=NodeId("n")).scope
    failure = ReportFailure(event_id=E1, attempt=1, reason="no")
    scope = decide(scope, failure, T0, timing=timing).scope
    assert scope.events[E1].phase is Phase.FAILED
    assert scope.roster.instances[WORKER].power is Power.RUNNING


def test_a_stop_waits_for_what_is_under_way_on_its_instance() -> None:
    reboot = Schedule(
        event_id=E1, type=EventType.REBOOT, targets=names("web-0"), already_happened=True
    )
    scope = after(web(), reboot, operate(OperationKind.STOP, "web-0", E2))
    assert scope.events[E2].phase is Phase.SCHEDULED
    assert [each["EventId"] for each in shown(scope)] == [E1]
    scope = after(scope, ReportDone(event_id=E1))
    assert scope.events[E2].phase is Phase.STARTED


def test_a_pending_event_does_not_hold_up_a_stop() -> None:
    restart = operate(OperationKind.RESTART)
    scope = after(workers(), restart, operate(OperationKind.STOP, id=E2))
    assert [scope.events[each].phase for each in (E1, E2)] == [Phase.SCHEDULED, Phase.STARTED]


@pytest.mark.parametrize("kind", [OperationKind.RESTART, OperationKind.DELETE])
def test_a_stopped_instance_can_be_restarted_and_deleted(kind: OperationKind) -> None:
    scope = after(workers(), ReportPower(instance=WORKER, power=Power.DEALLOCATED), operate(kind))
    assert len(shown(scope)) == 1
    scope = after(scope, Approve(event_id=E1, by=ME), ReportDone(event_id=E1))
    assert scope.events[E1].phase is Phase.COMPLETED
    assert scope.roster.has_live(WORKER) == (kind is OperationKind.RESTART)


def test_a_reimage_is_announced_as_a_reboot_if_the_model_says_so() -> None:
    scope = after(with_reimage_notice(), operate(OperationKind.REIMAGE))
    (event,) = shown(scope)
    assert (event["EventType"], event["EventSource"]) == ("Reboot", "User")
    assert event["Description"] == (
        "Virtual machine is going to be reimaged as requested by authorized user."
    )
    assert scope.events[E1].not_before_ms == T0 + 15 * MINUTE_MS


def test_a_reimage_without_a_notice_runs_unseen() -> None:
    scope = after(workers(), operate(OperationKind.REIMAGE))
    assert scope.events[E1].phase is Phase.STARTED
    assert not shown(scope)


def test_the_own_model_of_an_instance_says_whether_its_reimage_is_announced() -> None:
    scope = after(workers(), NOTICE, UpgradeInstances(names=names("workers_1")))
    scope = after(scope, batch(OperationKind.REIMAGE, "workers_0", "workers_1"))
    assert [each["Resources"] for each in shown(scope)] == [["workers_1"]]


def test_a_raised_minimum_of_reboots_holds_for_reimages_too() -> None:
    policy = ChangePolicy(policy=Policy(notice_ms={EventType.REBOOT: HOUR_MS}))
    scope = after(with_reimage_notice(), policy, operate(OperationKind.REIMAGE))
    assert scope.events[E1].not_before_ms == T0 + HOUR_MS


def test_agreeing_to_restarts_is_not_agreeing_to_reimages() -> None:
    policy = ChangePolicy(policy=Policy(approve_user_reboot=True))
    reimage, restart = OperationKind.REIMAGE, OperationKind.RESTART
    scope = after(with_reimage_notice(), policy, operate(reimage))
    scope = after(scope, operate(restart, "workers_1", E2))
    assert [scope.events[each].phase for each in (E1, E2)] == [Phase.SCHEDULED, Phase.STARTED]


def test_a_reimaged_instance_is_of_the_latest_model() -> None:
    scope = after(workers(), NOTICE, operate(OperationKind.REIMAGE))
    assert not scope.roster.latest_model_applied(scope.roster.instances[WORKER])
    scope = after(scope, ReportDone(event_id=E1))
    latest = [scope.roster.latest_model_applied(each) for each in scope.roster.live]
    assert latest == [True, False, False]


def test_any_change_of_the_model_makes_a_new_generation() -> None:
    scope = after(workers(), NOTICE)
    assert scope.roster.model.generation == 2
    assert not decide(scope, NOTICE, T0).transitions
    other = ChangeModel(
        terminate_notice_ms=5 * MINUTE_MS, reimage_notice_ms=15 * MINUTE_MS, profile="image 2"
    )
    assert after(scope, other).roster.model.generation == 3


def test_all_targets_get_an_event_each_in_one_decision() -> None:
    change = decide(workers(), batch(OperationKind.RESTART, "workers_0", "workers_2"), T0)
    events = [change.scope.events[each] for each in (E1, E2)]
    assert [each.resources for each in events] == [("workers_0",), ("workers_2",)]
    assert events[0].not_before_ms == events[1].not_before_ms
    assert change.scope.incarnation == workers().incarnation + 1


@pytest.mark.parametrize(
    ("targets", "code"),
    [
        ((), Code.NO_TARGET),
        (("workers_0", "stranger"), Code.UNKNOWN_INSTANCE),
        (("workers_0", "workers_1", "workers_0"), Code.ALREADY_PENDING),
    ],
)
def test_if_one_is_refused_all_are(targets: tuple[str, ...], code: Code) -> None:
    with pytest.raises(Refused) as refused:
        decide(workers(), batch(OperationKind.STOP, *targets), T0)
    assert refused.value.code is code


def test_one_pending_operation_refuses_the_others_with_it() -> None:
    scope = after(workers(), operate(OperationKind.DELETE, "workers_1", E3))
    with pytest.raises(Refused) as refused:
        decide(scope, batch(OperationKind.DELETE, "workers_0", "workers_1"), T0)
    assert refused.value.code is Code.ALREADY_PENDING


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        (OperationKind.RESTART, True),
        (OperationKind.REDEPLOY, True),
        (OperationKind.REIMAGE, True),
        (OperationKind.DELETE, False),
        (OperationKind.EVICT, False),
        *((kind, False) for kind in POWER),
    ],
)
def test_what_disturbs_without_taking_away_is_counted(kind: OperationKind, counts: bool) -> None:
    assert is_counted(operate(kind)) == counts
    assert is_counted(batch(kind, "workers_0")) == counts
    if kind is not OperationKind.EVICT:
        assert pending_operations(after(with_reimage_notice(), operate(kind))) == counts


def test_what_waits_unannounced_is_not_counted() -> None:
    """Nobody watches, so the restart runs as soon as the instance is free."""
    happened = Schedule(
        event_id=E2, type=EventType.FREEZE, targets=names("workers_0"), already_happened=True
    )
    scope = after(workers(activated=False), happened, operate(OperationKind.RESTART))
    assert scope.events[E1].phase is Phase.SCHEDULED
    assert pending_operations(scope) == 0


def test_the_limit_counts_all_that_is_asked_for_at_once() -> None:
    before = workers()
    restarted = after(before, batch(OperationKind.RESTART, "workers_0", "workers_1", "workers_2"))
    refuse_over_limit(before, restarted, pending=7, pending_max=10)
    with pytest.raises(Refused) as refused:
        refuse_over_limit(before, restarted, pending=8, pending_max=10)
    assert refused.value.code is Code.TOO_MANY_OPERATIONS
    refuse_over_limit(before, restarted, pending=8, pending_max=0)


def test_a_whole_scale_set_can_be_deleted_whatever_is_pending() -> None:
    before = workers(100)
    everyone = [each.name for each in before.roster.live]
    gone = after(before, batch(OperationKind.DELETE, *everyone))
    assert len(shown(gone)) == 100
    refuse_over_limit(before, gone, pending=10, pending_max=10)
