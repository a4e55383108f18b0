"""Declaring a roster: what changes, what stays, and what an event protects."""

from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import (
    Cancel,
    ChangeModel,
    Declare,
    Operate,
    ReportDone,
    ReportPower,
    Schedule,
)
from fairwarning.core.decide import decide
from fairwarning.core.document import visible_events
from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.model import (
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Phase,
    Policy,
    Power,
    Priority,
    Roster,
    Scope,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import VirtualMachine, expand
from fairwarning.core.transitions import Cancelled, InstanceDeleted, RosterDeclared
from tests.core.builders import E1, E2, T0, after, names, web, workers

WEB_0, WEB_1, WEB_2 = names("web-0", "web-1", "web-2")


def changed(roster: Roster, **by_name: Mapping[str, object]) -> Roster:
    """`changed(roster, web_0={"addresses": …})`."""
    instances = dict(roster.instances)
    for key, fields in by_name.items():
        name = InstanceName(key.replace("_", "-"))
        instances[name] = replace(instances[name], **fields)
    return replace(roster, instances=instances)


def without(roster: Roster, *gone: str) -> Roster:
    rest = {name: each for name, each in roster.instances.items() if name not in gone}
    return replace(roster, instances=rest)


def with_new(roster: Roster, name: str, **fields: object) -> Roster:
    new = replace(Instance(name=InstanceName(name)), **fields)
    return replace(roster, instances={**roster.instances, new.name: new})


def removal(scope: Scope, *gone: str, force: bool = False) -> Declare:
    """Without names, of everybody."""
    live = [each.name for each in scope.roster.live]
    return Declare(roster=without(scope.roster, *(gone or live)), force=force)


def reboot(*targets: InstanceName, happened: bool = False) -> Schedule:
    return Schedule(event_id=E1, type=EventType.REBOOT, targets=targets, already_happened=happened)


def refusal(scope: Scope, command: Declare) -> Refused:
    with pytest.raises(Refused) as refused:
        decide(scope, command, T0)
    return refused.value


def test_the_very_same_roster_changes_nothing() -> None:
    scope = after(web(), removal(web(), WEB_1))
    for roster in (scope.roster, without(scope.roster, "web-1")):
        assert not decide(scope, Declare(roster=roster), T0).transitions


def test_instances_come_go_and_change_in_one_transition_each() -> None:
    scope = web()
    roster = changed(without(scope.roster, "web-3"), web_0={"addresses": ("10.9.9.9",)})
    roster = with_new(roster, "web-9", tags={"a": "b"})
    change = decide(scope, Declare(roster=roster), T0)
    kinds = [type(each) for each in change.transitions]
    assert kinds == [InstanceDeleted, RosterDeclared]
    live = {each.name: each for each in change.scope.roster.live}
    assert list(live) == ["web-0", "web-1", "web-2", "web-9"]
    assert live[WEB_0].addresses == ("10.9.9.9",)
    assert live[InstanceName("web-9")].tags == {"a": "b"}


def test_settings_are_taken_over() -> None:
    roster = replace(
        web().roster,
        location="north",
        test=True,
        driver="command",
        driver_settings={"run": "x"},
        origin="file",
        policy=Policy(approve_user_reboot=True),
    )
    assert after(web(), Declare(roster=roster)).roster == roster


def test_power_and_model_are_no_part_of_a_declaration() -> None:
    scope = after(
        workers(2),
        ReportPower(instance=InstanceName("workers_0"), power=Power.STOPPED),
    )
    roster = replace(
        scope.roster, model=replace(scope.roster.model, terminate_notice_ms=10 * MINUTE_MS)
    )
    roster = with_new(roster, "workers_2", power=Power.STOPPED)
    scope = after(scope, Declare(roster=roster))
    assert scope.roster.model.generation == 2
    assert [each.power for each in scope.roster.live] == ["stopped", "running", "running"]
    notices = [each.model.terminate_notice_ms for each in scope.roster.live]
    assert notices == [5 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS]
    assert scope.roster.latest_model_applied(scope.roster.live[2])


def test_declaring_a_notice_raises_the_generation_as_changing_the_model_does() -> None:
    by_command = after(workers(2), ChangeModel(terminate_notice_ms=None))
    roster = workers(2).roster
    declared = replace(roster, model=replace(roster.model, terminate_notice_ms=None))
    assert after(workers(2), Declare(roster=declared)).roster == by_command.roster


def test_what_a_declaration_does_not_know_of_the_model_stays() -> None:
    model = ChangeModel(
        terminate_notice_ms=5 * MINUTE_MS, reimage_notice_ms=15 * MINUTE_MS, profile="image 1"
    )
    scope = after(workers(2), model)
    declared = workers(2, notice_ms=10 * MINUTE_MS).roster
    kept = after(scope, Declare(roster=declared)).roster.model
    assert kept == replace(scope.roster.model, generation=3, terminate_notice_ms=10 * MINUTE_MS)
    assert not decide(scope, Declare(roster=workers(2).roster), T0).transitions


def test_a_set_that_begins_anew_inherits_nothing_of_its_old_model() -> None:
    model = ChangeModel(
        terminate_notice_ms=5 * MINUTE_MS, reimage_notice_ms=15 * MINUTE_MS, profile="image 1"
    )
    scope = after(workers(2, activated=False), model)
    removed = replace(without(scope.roster, "workers_0", "workers_1"), is_removed=True)
    scope = after(scope, Declare(roster=removed))
    anew = after(scope, Declare(roster=workers(2).roster)).roster
    assert (anew.model.reimage_notice_ms, anew.model.profile) == (None, "")
    assert all(anew.latest_model_applied(each) for each in anew.live)


def test_an_instance_with_a_pending_event_is_removed_by_force_only() -> None:
    scope = after(web(), reboot(WEB_0, WEB_2))
    refused = refusal(scope, removal(scope, WEB_2))
    assert refused.code is Code.INSTANCE_HAS_EVENT
    assert "--force" in refused.message
    assert E1 in refused.message
    change = decide(scope, removal(scope, WEB_2, force=True), T0)
    assert change.scope.events[E1].phase is Phase.CANCELLED
    assert change.scope.events[E1].outcome == "instance web-2 was removed"
    assert not visible_events(change.scope)
    assert change.scope.incarnation == scope.incarnation + 1


def test_moving_to_another_update_domain_needs_force_while_an_event_is_pending() -> None:
    scope = after(web(), reboot(WEB_0))
    moved = changed(scope.roster, web_0={"update_domain": 1})
    assert refusal(scope, Declare(roster=moved)).code is Code.INSTANCE_HAS_EVENT
    forced = decide(scope, Declare(roster=moved, force=True), T0)
    assert isinstance(forced.transitions[0], Cancelled)
    assert forced.scope.roster.instances[WEB_0].update_domain == 1


def test_others_may_change_while_an_event_is_pending() -> None:
    scope = after(web(), reboot(WEB_0))
    roster = changed(without(scope.roster, "web-3"), web_1={"update_domain": 0})
    roster = changed(roster, web_0={"addresses": (), "handle": "x", "tags": {"a": "b"}})
    scope = after(scope, Declare(roster=roster))
    assert scope.events[E1].phase is Phase.SCHEDULED


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "edit",
    [
        lambda roster: without(roster, "web-0"),
        lambda roster: changed(roster, web_0={"update_domain": 1}),
        lambda roster: changed(roster, web_0={"handle": "another"}),
        lambda roster: replace(roster, driver="command"),
        lambda roster: replace(roster, driver_settings={"run": "x"}),
    ],
    ids=["removed", "moved", "handle", "driver", "driver-settings"],
)
def test_a_started_event_keeps_what_it_acts_on(
    edit: Callable[[Roster], Roster], force: bool
) -> None:
    scope = after(web(), reboot(WEB_0, happened=True))
    declaration = Declare(roster=edit(scope.roster), force=force)
    assert refusal(scope, declaration).code is Code.EVENT_STARTED


def test_a_name_may_come_back() -> None:
    scope = after(web(), removal(web(), WEB_0))
    back = after(scope, Declare(roster=web().roster))
    assert back.roster.instances == web().roster.instances


def test_a_name_does_not_come_back_into_an_event_of_its_predecessor() -> None:
    scope = after(web(test=True), reboot(WEB_0, WEB_2))
    lost = Schedule(event_id=E2, type=EventType.TERMINATE, targets=(WEB_0,), already_happened=True)
    scope = after(scope, lost, ReportDone(event_id=E2))
    assert not scope.roster.has_live(WEB_0)
    assert scope.events[E1].phase is Phase.SCHEDULED
    declaration = Declare(roster=web(test=True).roster)
    assert refusal(scope, declaration).code is Code.INSTANCE_HAS_EVENT
    forced = after(scope, replace(declaration, force=True))
    assert forced.events[E1].outcome == "instance web-0 was declared anew"


def test_a_number_is_used_once_until_the_set_is_removed() -> None:
    scope = workers(3, activated=False)
    scope = after(scope, removal(scope, "workers_2"))
    refused = refusal(scope, Declare(roster=with_new(scope.roster, "workers_2")))
    assert refused.code is Code.INSTANCE_EXISTS
    assert "workers_3" in refused.message
    scope = after(scope, removal(scope))
    assert not scope.roster.live
    assert refusal(scope, Declare(roster=workers(2).roster)).code is Code.INSTANCE_EXISTS
    scope = after(scope, Declare(roster=replace(scope.roster, is_removed=True)))
    anew = after(scope, Declare(roster=workers(2).roster))
    assert [each.name for each in anew.roster.live] == ["workers_0", "workers_1"]
    assert anew.roster.next_number == 2


def test_a_user_operation_is_protected_as_well() -> None:
    restart = Operate(event_id=E1, kind=OperationKind.RESTART, instance=WEB_0)
    scope = after(web(), restart)
    declaration = removal(scope)
    assert refusal(scope, declaration).code is Code.INSTANCE_HAS_EVENT
    after(after(scope, Cancel(event_id=E1)), declaration)


def test_deleted_instances_stay_known_until_they_are_forgotten() -> None:
    scope = after(web(), removal(web(), WEB_0))
    dead = scope.roster.instances[WEB_0]
    assert (dead.deleted_ms, dead.addresses) == (T0, ())
    later = Instant(T0 + 1)
    again = decide(scope, Declare(roster=with_new(scope.roster, "web-9")), later).scope
    assert again.roster.instances[WEB_0].deleted_ms == T0


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda r: replace(r, resource="other"), Code.FLEET_INVALID),
        (lambda r: replace(r, subscription="other"), Code.FLEET_INVALID),
        (lambda r: replace(r, is_numbered=True), Code.FLEET_INVALID),
        (lambda r: replace(r, location="a/b"), Code.FLEET_INVALID),
        (lambda r: replace(r, policy=Policy(notice_ms={EventType.REBOOT: 1})),
         Code.NOTICE_NOT_LOWERABLE),
        (lambda r: changed(r, web_0={"addresses": ("10.0.0.01",)}), Code.ADDRESS_INVALID),
        (lambda r: changed(r, web_0={"update_domain": 2}), Code.FLEET_INVALID),
        (lambda r: with_new(r, "-"), Code.NAME_INVALID),
        (lambda r: replace(r, model=workers().roster.model), Code.NOT_A_SCALE_SET),
        (lambda r: replace(r, instances={
            n: Instance(name=n) for n in names(*(f"x-{k}" for k in range(101)))}),
         Code.SCOPE_FULL),
    ],
)  # fmt: skip
def test_a_declaration_passes_the_checks_of_a_new_scope(
    edit: Callable[[Roster], Roster], code: Code
) -> None:
    assert refusal(web(), Declare(roster=edit(web().roster))).code is code


def test_a_standalone_vm_has_room_for_one() -> None:
    (scope,) = expand(VirtualMachine(name="db"))
    two = with_new(scope.roster, "db2")
    assert refusal(scope, Declare(roster=two)).code is Code.SCOPE_FULL


def test_a_uniform_instance_is_called_by_its_number() -> None:
    declaration = Declare(roster=with_new(workers().roster, "joe"))
    assert refusal(workers(), declaration).code is Code.NAME_INVALID


def test_spot_and_a_terminate_notice_exclude_each_other() -> None:
    roster = with_new(workers().roster, "workers_3", priority=Priority.SPOT)
    assert refusal(workers(), Declare(roster=roster)).code is Code.TERMINATE_NOT_FOR_SPOT
