"""Planning around notices and drivers: what a declaration takes away, and what it does not."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from fairwarning.core.commands import Approve, ReportDone
from fairwarning.core.declare import leaving
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import EventType, Roster, Scope, operator_actor
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import Place, Resource, ScaleSet
from fairwarning.fleet_file.model import Fleet, Plan
from fairwarning.fleet_file.plan import confirmation, refuse_existing, removal
from tests.core.builders import names
from tests.fleet_file.test_plan import World, pool, said, vm
from tests.fleet_file.test_plan_of_any import fleets
from tests.support.fleet_files import read_json

NOTICE = 5 * MINUTE_MS
ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
LEAVES = "leaves by a Terminate event, with 5 min of notice"
UNWARNED = "leaves at once, without its 5 min of notice"


def watched(*resources: Resource) -> World:
    world = World(*resources)
    world.watch()
    return world


def finish_terminates(world: World) -> None:
    """Everybody agrees, and the driver does it."""
    for scope in world.current:
        for event in scope.unfinished:
            assert event.type is EventType.TERMINATE
            world.do(scope.id, Approve(event_id=event.id, by=operator_actor("me")))
        for event in world.scopes[scope.id].unfinished:
            world.do(scope.id, ReportDone(event_id=event.id))


def test_a_smaller_set_says_who_leaves_and_how() -> None:
    world = watched(pool(3, notice_ms=NOTICE))
    found = world.apply(pool(1))
    assert said(found) == [
        f"change scope {world.only().id}: terminate notice 5 min → none",
        f"remove instance pool_1: {LEAVES}",
        f"remove instance pool_2: {LEAVES}",
    ]
    assert [each.terminate_notice_ms for each in found.changes] == [None, NOTICE, NOTICE]
    assert world.names("pool") == ["pool_0", "pool_1", "pool_2"]
    assert world.plan(pool(1)) == Plan(), "they are on their way"
    finish_terminates(world)
    assert world.names("pool") == ["pool_0"]


def test_a_set_that_is_left_out_names_everybody_who_is_due() -> None:
    unwatched = World(pool(7, notice_ms=NOTICE))
    assert said(unwatched.plan()) == [
        f"remove scope {unwatched.only().id}: pool_0 … pool_6 (7 instances)"
    ]
    world = watched(pool(7, notice_ms=NOTICE))
    assert said(world.apply()) == [f"remove instance pool_{n}: {LEAVES}" for n in range(7)]
    finish_terminates(world)
    assert not world.only().roster.live


def test_who_leaves_keeps_its_address_until_then() -> None:
    world = watched(pool(3, *ADDRESSES, notice_ms=NOTICE))
    smaller = pool(1, "10.0.0.3", notice_ms=NOTICE)
    world.apply(smaller)
    assert [each.addresses for each in world.live("pool")] == [(), ("10.0.0.2",), ("10.0.0.3",)]
    finish_terminates(world)
    world.apply(smaller)
    assert [each.addresses for each in world.live("pool")] == [("10.0.0.3",)]


def test_nobody_else_gets_the_address_of_a_leaver() -> None:
    world = watched(pool(3, *ADDRESSES, notice_ms=NOTICE))
    wanted: list[Resource] = [pool(2, *ADDRESSES[:2], notice_ms=NOTICE), vm("a", "10.0.0.3")]
    with pytest.raises(Refused) as refused:
        world.plan(*wanted)
    assert refused.value.code is Code.ADDRESS_IN_USE
    assert "'pool_2'" in refused.value.message
    assert "until its Terminate is over" in refused.value.message
    world.apply(wanted[0])
    with pytest.raises(Refused, match="until its Terminate is over"):
        world.plan(*wanted)
    finish_terminates(world)
    world.apply(*wanted)
    assert world.live("a")[0].addresses == ("10.0.0.3",)


def test_who_leaves_without_notice_gives_its_address_up_at_once() -> None:
    world = watched(pool(3, *ADDRESSES, notice_ms=NOTICE))
    wanted: list[Resource] = [pool(2, *ADDRESSES[:2], notice_ms=NOTICE), vm("a", "10.0.0.3")]
    world.apply(*wanted, without_notice=True)
    assert world.live("a")[0].addresses == ("10.0.0.3",)


def test_a_set_whose_instances_all_leave_keeps_what_the_file_does_not_say() -> None:
    world = watched(pool(1, notice_ms=NOTICE))
    scope = world.only()
    world.scopes[scope.id] = _with_prefix(scope, "vm")
    world.apply(pool(0, notice_ms=NOTICE))
    assert world.names("pool") == ["pool_0"]
    assert world.only().roster.computer_name_prefix == "vm"


def _with_prefix(scope: Scope, prefix: str) -> Scope:
    return replace(scope, roster=replace(scope.roster, computer_name_prefix=prefix))


def test_without_notice_names_everybody_and_removes_at_once() -> None:
    world = watched(pool(7, notice_ms=NOTICE))
    found = world.apply(without_notice=True)
    assert said(found) == [f"remove instance pool_{n}: {UNWARNED}" for n in range(7)]
    assert all(each.without_notice for each in found.changes)
    assert not world.only().roster.live


def test_a_confirmation_stands_for_those_who_leave_and_no_others() -> None:
    world = watched(pool(3, notice_ms=NOTICE), pool_named("other", 3))
    one, two = (
        confirmation(world.plan(pool(n, notice_ms=NOTICE), prune=False, without_notice=True))
        for n in (2, 1)
    )
    other = confirmation(world.plan(pool_named("other", 2), prune=False, without_notice=True))
    assert len({one, two, other, ""}) == 4
    again = world.plan(pool(2, notice_ms=NOTICE), prune=False, without_notice=True)
    assert confirmation(again) == one
    assert not confirmation(world.plan(pool(2, notice_ms=NOTICE), prune=False))
    unwatched = World(pool(3, notice_ms=NOTICE))
    assert not confirmation(unwatched.plan(without_notice=True))


def pool_named(name: str, capacity: int) -> ScaleSet:
    return dataclasses.replace(pool(capacity, notice_ms=NOTICE), name=name)


def test_removing_one_instance_goes_the_same_way() -> None:
    world = watched(pool(2, notice_ms=NOTICE))
    scope = world.only()
    assert said(removal(scope, names("pool_1"))) == [f"remove instance pool_1: {LEAVES}"]
    world.remove(scope, "pool_1")
    assert removal(world.only(), names("pool_1")) == Plan(), "it is on its way"
    unwarned = removal(scope, names("pool_1"), without_notice=True)
    assert said(unwarned) == [f"remove instance pool_1: {UNWARNED}"]
    assert unwarned.declares[0].without_notice == {"pool_1"}


@pytest.mark.parametrize("there", ["pool", "Pool"])
def test_creating_refuses_what_is_there_in_any_spelling(there: str) -> None:
    world = watched(pool_named(there, 2))

    def create(name: str) -> None:
        refuse_existing(world.current, Fleet(resources=(pool_named(name, 1),)))

    def refuse(name: str) -> None:
        with pytest.raises(Refused, match=f"'{name}' is there already") as refused:
            create(name)
        assert refused.value.code is Code.SCOPE_EXISTS

    refuse("pool")
    refuse("Pool")
    create("pool2")
    world.apply()
    refuse("pool")  # its instances are only about to leave
    finish_terminates(world)
    create("pool")


COMMAND = Place(origin="file", driver="command", driver_settings={"run": "/bin/true"})


def test_a_partial_declaration_that_names_no_driver_keeps_it() -> None:
    world = World(vm("s2", place=COMMAND), dataclasses.replace(pool(99), place=COMMAND))
    (silent,) = read_json({"vm": [{"name": "s2"}]}).resources
    assert world.plan(silent, prune=False) == Plan()
    (larger,) = read_json({"scale_set": [{"name": "pool", "capacity": 101}]}).resources
    world.apply(larger, prune=False)
    drivers = {each.roster.driver for each in world.current}
    assert drivers == {"command"}, "of the further placement group too"


def test_a_partial_declaration_that_names_no_capacity_replaces_nobody_who_is_leaving() -> None:
    world = watched(pool(3, notice_ms=NOTICE))
    world.remove(world.only(), "pool_1")
    (silent,) = read_json({"scale_set": [{"name": "pool", "tags": {"a": "b"}}]}).resources
    assert {each.what for each in world.plan(silent, prune=False).changes} == {
        "instance pool_0",
        "instance pool_2",
    }


def test_a_partial_declaration_of_what_was_removed_makes_it_new() -> None:
    world = World(dataclasses.replace(vm("s2"), tags={"a": "b"}))
    world.remove(world.only(), "s2")
    (silent,) = read_json({"vm": [{"name": "s2"}]}).resources
    world.apply(silent, prune=False)
    assert [dict(each.tags) for each in world.live("s2")] == [{}]


def test_a_partial_declaration_that_names_another_driver_changes_it() -> None:
    world = World(vm("s2", place=COMMAND))
    (loud,) = read_json({"vm": [{"name": "s2", "driver": "simulated"}]}).resources
    assert said(world.plan(loud, prune=False)) == [
        f"change scope {world.only().id}: driver command → simulated; driver settings run changed"
    ]


def test_a_partial_declaration_that_names_no_handle_keeps_it() -> None:
    """Else the driver, which stays too, would act on another machine."""
    world = World(dataclasses.replace(vm("s2", place=COMMAND), handle="vm-7"))
    (silent,) = read_json({"vm": [{"name": "s2", "tags": {"a": "b"}}]}).resources
    assert said(world.plan(silent, prune=False)) == ["change instance s2: tags none → a=b"]
    (loud,) = read_json({"vm": [{"name": "s2", "handle": "vm-8"}]}).resources
    assert said(world.plan(loud, prune=False)) == ["change instance s2: handle vm-7 → vm-8"]
    assert "handle vm-7 → its name" in said(world.plan(silent))[-1], "a whole file says it all"


def test_a_whole_file_that_names_no_driver_says_simulated_and_the_plan_shows_it() -> None:
    world = World(vm("s2", place=COMMAND))
    (silent,) = read_json({"vm": [{"name": "s2"}]}).resources
    assert said(world.plan(silent)) == [
        f"change scope {world.only().id}: driver command → simulated; driver settings run changed"
    ]


@settings(max_examples=60)
@given(fleets(), fleets())
def test_any_file_on_any_watched_fleet_warns_whoever_it_takes_away(
    first: Sequence[Resource], second: Sequence[Resource]
) -> None:
    world = watched(*first)
    due = {each.name for scope in world.current for each in leaving(scope, _nobody(scope))}
    try:
        world.apply(*second)
    except Refused:
        # A leaver still has an address that somebody else is to get.
        with pytest.raises(Refused, match="until its Terminate is over"):
            world.plan(*second)
        return
    live = {each.name for scope in world.current for each in scope.roster.live}
    assert due <= live
    finish_terminates(world)
    world.apply(*second)
    assert not world.plan(*second).changes, "now it is what the file says"


def _nobody(scope: Scope) -> Roster:
    return replace(scope.roster, instances={})


def test_a_file_that_leaves_a_set_out_removes_its_empty_groups_too() -> None:
    world = World(pool(101))
    world.apply(pool(1))
    assert [len(each.roster.live) for each in world.current] == [1, 0]
    world.apply()
    refuse_existing(world.current, Fleet(resources=(pool(1),)))
    assert world.plan() == Plan()


def test_a_smaller_set_leaves_alone_who_leaves_already_also_without_notice() -> None:
    world = watched(pool(2, notice_ms=NOTICE))
    world.remove(world.only(), "pool_1")
    assert world.plan(pool(1, notice_ms=NOTICE), without_notice=True) == Plan()
    assert world.names("pool") == ["pool_0", "pool_1"]


def test_a_set_whose_first_group_alone_is_empty_is_not_told_as_empty() -> None:
    world = World(pool(101))
    first = world.current[0]
    world.remove(first, *first.roster.instances)
    assert world.names("pool") == ["pool_100"]
    assert [each.detail for each in world.plan().changes if each.scope == first.id] == []
