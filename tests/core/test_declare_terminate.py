"""No declaration is a way around a terminate notice."""

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import (
    Activate,
    Approve,
    Cancel,
    ChangeModel,
    Declare,
    Operate,
    ReportDone,
    Schedule,
    UpgradeInstances,
)
from fairwarning.core.decide import Change, decide
from fairwarning.core.document import visible_events
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.journal_text import sentence
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    OperationKind,
    Phase,
    Policy,
    Priority,
    Roster,
    Scope,
    operator_actor,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import ScaleSet, expand
from fairwarning.core.transitions import InstanceDeleted, Scheduled
from tests.core.builders import E1, E2, T0, after, event_id, names, web, workers

W0, W1, W2 = names("workers_0", "workers_1", "workers_2")
ME = operator_actor("me")
IDS = {W0: event_id(10), W1: event_id(11), W2: event_id(12)}


def keeping(roster: Roster, *kept: InstanceName) -> Roster:
    return replace(roster, instances={name: roster.instances[name] for name in kept})


def declaration(
    scope: Scope, *kept: InstanceName, force: bool = False, unwarned: tuple[InstanceName, ...] = ()
) -> Declare:
    return Declare(
        roster=keeping(scope.roster, *kept),
        force=force,
        terminates=IDS,
        without_notice=frozenset(unwarned),
    )


def live(scope: Scope) -> list[str]:
    return [each.name for each in scope.roster.live]


def kinds(change: Change) -> list[type]:
    return [type(each) for each in change.transitions]


def refusal(scope: Scope, command: Declare) -> Refused:
    with pytest.raises(Refused) as refused:
        decide(scope, command, T0)
    return refused.value


def test_who_is_left_out_is_warned_and_leaves_when_the_terminate_is_over() -> None:
    change = decide(workers(), declaration(workers(), W0), T0)
    scope = change.scope
    assert live(scope) == [W0, W1, W2]
    events = [scope.events[IDS[name]] for name in (W1, W2)]
    assert [each.resources for each in events] == [(W1,), (W2,)]
    for event in events:
        assert (event.type, event.operation) == (EventType.TERMINATE, OperationKind.DELETE)
        assert event.announced
        assert event.not_before_ms == T0 + 5 * MINUTE_MS
    assert len(visible_events(scope)) == 2
    for id in (IDS[W1], IDS[W2]):
        scope = after(scope, Approve(event_id=id, by=ME))
    assert live(scope) == [W0, W1, W2]
    scope = after(scope, ReportDone(event_id=IDS[W1]), ReportDone(event_id=IDS[W2]))
    assert live(scope) == [W0]


def test_declaring_the_notice_away_in_the_same_step_does_not_help() -> None:
    scope = workers()
    roster = keeping(scope.roster)
    roster = replace(roster, model=replace(roster.model, terminate_notice_ms=None))
    change = decide(scope, Declare(roster=roster, terminates=IDS), T0)
    assert live(change.scope) == [W0, W1, W2]
    assert change.scope.roster.model.terminate_notice_ms is None
    for name in (W0, W1, W2):
        assert change.scope.roster.instances[name].model.terminate_notice_ms == 5 * MINUTE_MS
        assert change.scope.events[IDS[name]].not_before_ms == T0 + 5 * MINUTE_MS


def test_neither_does_lowering_the_minimum_in_the_same_step() -> None:
    policy = Policy(notice_ms={EventType.TERMINATE: HOUR_MS})
    scope = after(workers(1), Declare(roster=replace(workers(1).roster, policy=policy)))
    roster = replace(keeping(scope.roster), policy=Policy())
    change = decide(scope, Declare(roster=roster, terminates=IDS), T0)
    assert change.scope.events[IDS[W0]].not_before_ms == T0 + HOUR_MS


def test_nor_making_it_a_spot_instance() -> None:
    """Spot instances get no Terminate events."""
    scope = workers(1)
    spot = {W0: replace(scope.roster.instances[W0], priority=Priority.SPOT)}
    roster = replace(
        scope.roster,
        model=replace(scope.roster.model, terminate_notice_ms=None),
        instances=spot,
    )
    refused = refusal(scope, Declare(roster=roster))
    assert refused.code is Code.TERMINATE_NOT_FOR_SPOT
    assert "workers_0" in refused.message
    unwatched = after(workers(1, activated=False), Declare(roster=roster))
    assert unwatched.roster.instances[W0].priority is Priority.SPOT


def test_an_edge_that_brings_no_id_for_the_terminate_is_refused() -> None:
    refused = refusal(workers(), Declare(roster=keeping(workers().roster, W0)))
    assert refused.code is Code.INSTANCE_HAS_NOTICE
    assert "workers_1" in refused.message
    assert "5 min" in refused.message


def test_declaring_it_again_announces_nothing_twice() -> None:
    scope = after(workers(), declaration(workers(), W0))
    again = decide(scope, declaration(scope, W0), Instant(T0 + MINUTE_MS))
    assert not again.transitions


def test_a_delete_that_is_under_way_goes_on() -> None:
    delete = Operate(event_id=E1, kind=OperationKind.DELETE, instance=W2)
    scope = after(workers(), delete)
    for force in (False, True):
        change = decide(scope, declaration(scope, W0, W1, force=force), T0)
        assert not change.transitions
    started = after(scope, Approve(event_id=E1, by=ME))
    assert started.events[E1].phase is Phase.STARTED
    assert not decide(started, declaration(started, W0, W1), T0).transitions


def test_an_announced_delete_outlasts_the_notice_of_its_model() -> None:
    delete = Operate(event_id=E1, kind=OperationKind.DELETE, instance=W2)
    scope = after(workers(), delete, ChangeModel(terminate_notice_ms=None))
    scope = after(scope, UpgradeInstances(names=(W2,)))
    assert scope.roster.instances[W2].model.terminate_notice_ms is None
    for force in (False, True):
        assert not decide(scope, declaration(scope, W0, W1, force=force), T0).transitions


def test_after_a_cancelled_terminate_the_next_declaration_announces_another() -> None:
    scope = after(workers(), declaration(workers(), W0, W1), Cancel(event_id=IDS[W2]))
    assert live(scope) == [W0, W1, W2]
    command = replace(declaration(scope, W0, W1), terminates={W2: E2})
    assert after(scope, command).events[E2].phase is Phase.SCHEDULED


def test_another_event_of_a_leaver_needs_no_force_and_ends_with_it() -> None:
    reboot = Schedule(event_id=E1, type=EventType.REBOOT, targets=(W2,))
    scope = after(workers(), reboot)
    scope = after(scope, declaration(scope, W0, W1))
    assert scope.events[E1].phase is Phase.SCHEDULED
    scope = after(scope, Approve(event_id=IDS[W2], by=ME), ReportDone(event_id=IDS[W2]))
    assert live(scope) == [W0, W1]
    assert scope.events[E1].phase is Phase.CANCELLED


def test_a_leaver_finds_a_place_when_there_are_fewer_domains() -> None:
    scope = workers()
    roster = replace(keeping(scope.roster, W0), update_domains=2, fault_domains=1)
    scope = after(scope, Declare(roster=roster, terminates=IDS))
    assert scope.roster.instances[W2].update_domain == 0
    assert scope.events[IDS[W2]].update_domain == 0
    assert not decide(scope, Declare(roster=scope.roster), T0).transitions


def test_a_set_that_nobody_watches_loses_its_instances_at_once() -> None:
    scope = workers(activated=False)
    change = decide(scope, declaration(scope, W0), T0)
    assert kinds(change) == [InstanceDeleted, InstanceDeleted]
    assert not any(getattr(each, "without_notice", False) for each in change.transitions)
    assert live(change.scope) == [W0]


def test_after_a_day_of_silence_nobody_watches_even_without_a_tick() -> None:
    late = Instant(T0 + 2 * DAY_MS)
    change = decide(workers(), declaration(workers(), W0), late)
    assert live(change.scope) == [W0]
    assert Scheduled not in kinds(change)


@pytest.mark.parametrize("priority", list(Priority))
def test_where_azure_announces_no_delete_nobody_waits_for_one(priority: Priority) -> None:
    scope, *_ = expand(ScaleSet(name="workers", capacity=3, priority=priority))
    scope = after(scope, Activate())
    assert live(after(scope, declaration(scope, W0))) == [W0]
    watched = web()
    gone = replace(watched.roster, instances={})
    assert not after(watched, Declare(roster=gone)).roster.live


def test_the_explicit_word_removes_at_once_and_the_history_says_so() -> None:
    scope = workers()
    change = decide(scope, declaration(scope, W0, unwarned=(W1,)), T0)
    assert live(change.scope) == [W0, W2]
    (gone,) = [each for each in change.transitions if isinstance(each, InstanceDeleted)]
    assert (gone.name, gone.without_notice) == (W1, True)
    assert sentence(gone) == "instance workers_1 removed without its terminate notice"
    assert change.scope.events[IDS[W2]].resources == (W2,)


def test_the_word_of_leaving_without_notice_is_not_force() -> None:
    """Each says one thing: cancel events, or leave without a Terminate."""
    delete = Operate(event_id=E1, kind=OperationKind.DELETE, instance=W2)
    scope = after(workers(), delete)
    command = declaration(scope, W0, W1, unwarned=(W2,))
    assert refusal(scope, command).code is Code.INSTANCE_HAS_EVENT
    scope = after(scope, replace(command, force=True))
    assert live(scope) == [W0, W1]
    assert scope.events[E1].phase is Phase.CANCELLED


def test_a_terminate_that_has_started_is_waited_for_by_either_word() -> None:
    delete = Operate(event_id=E1, kind=OperationKind.DELETE, instance=W2)
    scope = after(workers(), delete, Approve(event_id=E1, by=ME))
    command = declaration(scope, W0, W1, unwarned=(W2,), force=True)
    assert refusal(scope, command).code is Code.EVENT_STARTED


def test_two_leavers_cannot_share_an_event() -> None:
    same = {W1: EventId(E1), W2: EventId(E1)}
    refused = refusal(workers(), replace(declaration(workers(), W0), terminates=same))
    assert refused.code is Code.EVENT_ID_USED


@pytest.mark.parametrize("force", [False, True])
def test_fewer_update_domains_leave_a_pending_terminate_alone(force: bool) -> None:
    scope = after(workers(), declaration(workers(), W0))
    fewer = {
        name: replace(each, update_domain=0, fault_domain=0)
        for name, each in scope.roster.instances.items()
    }
    roster = replace(scope.roster, update_domains=1, fault_domains=1, instances=fewer)
    for step in (Declare(roster=roster, force=force), declaration(scope, W0, force=force)):
        wanted = replace(step.roster, update_domains=1, fault_domains=1)
        found = after(scope, replace(step, roster=wanted))
        assert {found.events[IDS[name]].phase for name in (W1, W2)} == {Phase.SCHEDULED}
        assert {each.update_domain for each in found.roster.live} == {0}
    started = after(scope, *(Approve(event_id=IDS[name], by=ME) for name in (W1, W2)))
    found = after(started, Declare(roster=roster, force=force))
    assert found.events[IDS[W1]].phase is Phase.STARTED


def test_the_history_says_who_has_no_notice_from_now_on() -> None:
    silent = ChangeModel(terminate_notice_ms=None, reimage_notice_ms=None, profile="")
    scope = after(workers(), silent)
    change = decide(scope, UpgradeInstances(names=(W0, W1)), T0)
    assert [sentence(each) for each in change.transitions] == [
        "instances workers_0, workers_1 upgraded to the latest model; no terminate notice from now "
        "on: workers_0, workers_1"
    ]
    louder = ChangeModel(terminate_notice_ms=6 * MINUTE_MS, reimage_notice_ms=None, profile="")
    change = decide(after(change.scope, louder), UpgradeInstances(names=(W0, W2)), T0)
    assert [sentence(each) for each in change.transitions] == [
        "instances workers_0, workers_2 upgraded to the latest model"
    ]
