"""What the end of an event, and a word about an instance, leave behind."""

import pytest

from fairwarning.core.commands import (
    AddInstances,
    Approve,
    ChangeModel,
    Command,
    Declare,
    Operate,
    ReportDone,
    ReportDrained,
    ReportPower,
    ReportSeen,
    Schedule,
    UpgradeInstances,
)
from fairwarning.core.decide import decide
from fairwarning.core.model import (
    EventType,
    EvictionPolicy,
    Instance,
    InstanceName,
    OperationKind,
    Policy,
    Power,
    Priority,
    Scope,
    operator_actor,
)
from fairwarning.core.resources import ScaleSet, expand
from fairwarning.core.transitions import InstancesUpgraded, PowerChanged
from tests.core.builders import E1, E2, T0, after, names, web, workers

FREEZE = Schedule(event_id=E1, type=EventType.FREEZE, targets=names("web-0", "web-2"))
WEB_0 = InstanceName("web-0")


def stop(name: str) -> Operate:
    return Operate(event_id=E2, kind=OperationKind.STOP, instance=InstanceName(name))


@pytest.mark.parametrize("eviction", list(EvictionPolicy))
def test_an_evicted_instance_is_deallocated_or_deleted_as_its_set_says(
    eviction: EvictionPolicy,
) -> None:
    (scope,) = expand(ScaleSet(name="s", capacity=1, priority=Priority.SPOT, eviction=eviction))
    evict = Operate(event_id=E1, kind=OperationKind.EVICT, instance=InstanceName("s_0"))
    scope = after(scope, evict, ReportDone(event_id=E1))
    instance = scope.roster.instances[InstanceName("s_0")]
    assert instance.is_live is (eviction is EvictionPolicy.DEALLOCATE)
    assert not instance.is_live or instance.power is Power.DEALLOCATED


def test_what_was_stopped_already_changes_nothing_when_it_is_stopped_again() -> None:
    report = ReportPower(instance=WEB_0, power=Power.STOPPED)
    scope = after(web(), report)
    assert decide(scope, report, T0).transitions == ()
    done = decide(after(scope, stop("web-0")), ReportDone(event_id=E2), T0)
    assert not [each for each in done.transitions if isinstance(each, PowerChanged)]


def test_a_declaration_leaves_the_power_of_an_instance_as_it_is() -> None:
    scope = after(web(), ReportPower(instance=WEB_0, power=Power.STOPPED))
    scope = after(scope, Declare(roster=web().roster))
    assert scope.roster.instances[WEB_0].power is Power.STOPPED


def test_only_the_first_sight_of_an_event_counts_also_once_it_has_started() -> None:
    seen = ReportSeen(event_ids=(E1, E2), instance=WEB_0)
    other = ReportSeen(event_ids=(E1,), instance=InstanceName("web-1"))
    approve = Approve(event_id=E1, by=operator_actor("me"))
    started = after(web(), FREEZE, approve)
    for scope in (after(web(), FREEZE), started):
        sight = after(scope, seen, other).events[E1].sight
        assert sight is not None
        assert sight.by == WEB_0
    over = after(started, ReportDone(event_id=E1))
    assert decide(over, seen, T0).transitions == ()


def test_an_instance_is_drained_once() -> None:
    drained: Command = ReportDrained(event_id=E1, instance=WEB_0)
    scope = after(web(), FREEZE, drained)
    assert scope.events[E1].drained == (WEB_0,)
    assert decide(scope, drained, T0).transitions == ()


def test_a_policy_approves_nothing_that_is_not_announced() -> None:
    """A stop that waits for another event runs unseen; nobody has to agree to it."""
    policy = Policy(approve_user_reboot=True, approve_all_instances_down=True)
    scope = after(web(policy=policy), FREEZE, Approve(event_id=E1, by=operator_actor("me")))
    for number in range(4):
        name = InstanceName(f"web-{number}")
        scope = after(scope, ReportPower(instance=name, power=Power.STOPPED))
    assert after(scope, stop("web-0")).events[E2].approvals == ()


def upgraded(scope: Scope) -> InstancesUpgraded:
    everybody = UpgradeInstances(names=tuple(scope.roster.instances))
    (found,) = decide(scope, everybody, T0).transitions
    assert isinstance(found, InstancesUpgraded)
    return found


def test_a_new_instance_is_of_the_newest_model_and_only_who_had_a_notice_loses_it() -> None:
    scope = after(workers(1), ChangeModel(terminate_notice_ms=None))
    scope = after(scope, AddInstances(instances=(Instance(name=InstanceName("workers_1")),)))
    assert scope.roster.instances[InstanceName("workers_1")].model == scope.roster.model
    scope = after(scope, ChangeModel(terminate_notice_ms=None, profile="other"))
    assert upgraded(scope).names == names("workers_0", "workers_1")
    assert upgraded(scope).lose_notice == names("workers_0")
