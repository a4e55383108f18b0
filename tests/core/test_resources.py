"""A declaration becomes the scopes, names and placements that Azure would give."""

import re
from dataclasses import fields

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import AddInstances, ChangeModel, UpgradeInstances
from fairwarning.core.hooks import Hook, Hooks
from fairwarning.core.identifiers import computer_name
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import Instance, InstanceName, Policy, Priority
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import (
    AvailabilitySet,
    CloudService,
    Member,
    Orchestration,
    Place,
    Resource,
    ScaleSet,
    VirtualMachine,
    expand,
    uniform_hostname,
)
from tests.core.builders import after, names, workers


def test_a_standalone_vm_is_a_scope_of_its_own() -> None:
    (scope,) = expand(VirtualMachine(name="db", addresses=("10.0.0.5",)))
    assert list(scope.roster.instances) == ["db"]
    assert scope.roster.instances[InstanceName("db")].addresses == ("10.0.0.5",)


def test_members_of_an_availability_set_go_round_the_domains() -> None:
    members = tuple(Member(name=f"web-{n}") for n in range(7))
    (scope,) = expand(
        AvailabilitySet(name="web", members=members, update_domains=3, fault_domains=2)
    )
    placed = [(each.update_domain, each.fault_domain) for each in scope.roster.live]
    assert placed == [(0, 0), (1, 1), (2, 0), (0, 1), (1, 0), (2, 1), (0, 0)]


def test_a_uniform_scale_set_numbers_its_instances() -> None:
    (scope,) = expand(ScaleSet(name="workers", capacity=2, addresses=("10.0.1.1", "10.0.1.2")))
    assert [(e.name, e.addresses) for e in scope.roster.live] == [
        ("workers_0", ("10.0.1.1",)),
        ("workers_1", ("10.0.1.2",)),
    ]


def test_a_flexible_scale_set_takes_the_given_suffixes() -> None:
    resource = ScaleSet(
        name="flex",
        capacity=2,
        orchestration=Orchestration.FLEXIBLE,
        suffixes=("0a1b2c3d", "ffffffff"),
    )
    (scope,) = expand(resource)
    assert list(scope.roster.instances) == ["flex_0a1b2c3d", "flex_ffffffff"]


def test_a_placement_group_holds_at_most_a_hundred() -> None:
    scopes = expand(ScaleSet(name="big", capacity=250))
    assert [len(scope.roster.live) for scope in scopes] == [100, 100, 50]
    everyone = [each.name for scope in scopes for each in scope.roster.live]
    assert everyone == [f"big_{n}" for n in range(250)]
    assert len({scope.id for scope in scopes}) == 3
    assert [scope.roster.next_number for scope in scopes] == [100, 200, 250]


def test_the_own_tags_of_a_member_win() -> None:
    member = Member(name="a", tags={"role": "own", "own": "1"})
    (scope,) = expand(
        AvailabilitySet(name="x", members=(member,), tags={"role": "set", "all": "1"})
    )
    (instance,) = scope.roster.live
    assert instance.tags == {"role": "own", "own": "1", "all": "1"}


def test_cloud_service_roles_are_named_as_azure_names_them() -> None:
    (scope,) = expand(CloudService(name="shop", roles={"FrontEnd": 2, "BackEnd": 1}))
    assert list(scope.roster.instances) == ["FrontEnd_IN_0", "FrontEnd_IN_1", "BackEnd_IN_0"]


def test_the_hostname_of_a_uniform_instance_is_its_number_in_base_36() -> None:
    assert uniform_hostname("web", 0) == "web000000"
    assert uniform_hostname("web", 35) == "web00000Z"
    assert uniform_hostname("web", 36 * 36) == "web000100"


def test_the_hostname_of_a_flexible_instance_is_not_its_name_and_stays_the_same() -> None:
    flexible = ScaleSet(
        name="flex", capacity=2, orchestration=Orchestration.FLEXIBLE, suffixes=("0a1b2c3d", "x")
    )
    first, second = (
        [computer_name(scope.roster, each) for each in scope.roster.live]
        for _ in range(2)
        for scope in expand(flexible)
    )
    assert first == second
    assert len({*first}) == 2
    assert all(re.fullmatch(r"flex[0-9A-Z]{6}", each) for each in first)
    (scope,) = expand(flexible)
    prefixed = replace(scope.roster, computer_name_prefix="box")
    assert computer_name(prefixed, scope.roster.live[0]) == first[0].replace("flex", "box")
    joined = Instance(name=InstanceName("db"))
    assert computer_name(prefixed, joined) == "db", "the set has not made it, and not named it"


def test_elsewhere_the_hostname_is_the_name() -> None:
    (scope,) = expand(VirtualMachine(name="db"))
    assert computer_name(scope.roster, scope.roster.live[0]) == "db"


def test_an_instance_keeps_its_model_until_it_is_upgraded() -> None:
    scope = after(workers(2), ChangeModel(terminate_notice_ms=10 * MINUTE_MS))
    roster = scope.roster
    assert [roster.latest_model_applied(each) for each in roster.live] == [False, False]
    scope = after(scope, UpgradeInstances(names=names("workers_0")))
    roster = scope.roster
    assert [roster.latest_model_applied(each) for each in roster.live] == [True, False]
    assert [each.model.terminate_notice_ms for each in roster.live] == [600_000, 300_000]


def test_names_are_as_long_as_azure_has_them() -> None:
    longest = ScaleSet(
        name="x" * 35, capacity=1, orchestration=Orchestration.FLEXIBLE, suffixes=("0a1b2c3d",)
    )
    assert len(expand(longest)[0].roster.live[0].name) == 44
    expand(ScaleSet(name="x" * 60, capacity=1))


def test_a_number_is_used_once() -> None:
    scope = after(workers(2), AddInstances(instances=(Instance(name=InstanceName("workers_7")),)))
    assert scope.roster.next_number == 8


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        (ScaleSet(name="x", capacity=-1), Code.FLEET_INVALID),
        (ScaleSet(name="x", capacity=1001), Code.FLEET_INVALID),
        (ScaleSet(name="x", capacity=1, addresses=("10.0.0.1", "10.0.0.2")), Code.FLEET_INVALID),
        (
            ScaleSet(name="x", capacity=2, orchestration=Orchestration.FLEXIBLE, suffixes=("a",)),
            Code.FLEET_INVALID,
        ),
        (ScaleSet(name="x" * 36, orchestration=Orchestration.FLEXIBLE), Code.NAME_INVALID),
        (ScaleSet(name="x", terminate_notice_ms=1), Code.TERMINATE_NOTICE_INVALID),
        (
            ScaleSet(
                name="x", capacity=1, priority=Priority.SPOT, terminate_notice_ms=5 * MINUTE_MS
            ),
            Code.TERMINATE_NOT_FOR_SPOT,
        ),
        (CloudService(name="x", roles={"r": 0}, addresses=("10.0.0.1",)), Code.FLEET_INVALID),
        (AvailabilitySet(name="x", update_domains=0), Code.FLEET_INVALID),
        (AvailabilitySet(name="x", update_domains=21), Code.FLEET_INVALID),
        (AvailabilitySet(name="x", fault_domains=6), Code.FLEET_INVALID),
        (
            AvailabilitySet(name="x", members=(Member(name="a"), Member(name="a"))),
            Code.INSTANCE_EXISTS,
        ),
        (VirtualMachine(name=""), Code.NAME_INVALID),
        (VirtualMachine(name="x" * 65), Code.NAME_INVALID),
        (VirtualMachine(name="x", addresses=("10.0.0.01",)), Code.ADDRESS_INVALID),
        (VirtualMachine(name="x", addresses=("FD00::1",)), Code.ADDRESS_INVALID),
        (VirtualMachine(name="x", addresses=("fe80::1",)), Code.ADDRESS_INVALID),
        (VirtualMachine(name="x", addresses=("febf::1",)), Code.ADDRESS_INVALID),
    ],
)
def test_a_bad_declaration_is_refused(resource: Resource, code: Code) -> None:
    with pytest.raises(Refused) as refused:
        expand(resource)
    assert refused.value.code is code


def test_policies_come_along() -> None:
    (scope,) = expand(VirtualMachine(name="db", policy=Policy(approve_user_reboot=True)))
    assert scope.roster.policy.approve_user_reboot


def test_all_that_is_said_of_the_place_comes_along() -> None:
    place = {
        "subscription": "11111111-2222-3333-4444-555555555555",
        "resource_group": "production",
        "location": "westeurope",
        "test": True,
        "driver": "command",
        "driver_settings": {"run": "/usr/local/bin/reboot"},
        "hooks": Hooks(after=(Hook(run=("on",)),)),
        "origin": "file",
    }
    assert {field.name for field in fields(Place)} == {*place, "left_out"}
    (scope,) = expand(VirtualMachine(name="db", place=Place(**place)))  # type: ignore[arg-type]
    assert {name: getattr(scope.roster, name) for name in place} == place
