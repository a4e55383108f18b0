"""Planning: what a file makes of the fleet that is there, and in which order."""

from dataclasses import replace
from itertools import count

import pytest

from fairwarning.core.commands import (
    Activate,
    AddInstances,
    ChangeModel,
    Command,
    Declare,
    OperateAll,
    Schedule,
)
from fairwarning.core.decide import decide
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import (
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Scope,
    ScopeId,
)
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
    suffixes_of,
)
from fairwarning.fleet_file.model import Action, Fleet, Plan, Step
from fairwarning.fleet_file.plan import exists, plan, refuse_plan, removal, removal_of_all
from tests.core.builders import E1, T0, event_id, names

FILE = Place(origin="file")


class World:
    """A store in a few lines: scopes, one change each at a time, and unique addresses."""

    def __init__(self, *resources: Resource) -> None:
        self.scopes: dict[ScopeId, Scope] = {}
        self.ids = count(1_000)
        self.apply(*resources)

    @property
    def current(self) -> list[Scope]:
        return list(self.scopes.values())

    def plan(self, *resources: Resource, prune: bool = True, without_notice: bool = False) -> Plan:
        fleet = Fleet(resources=resources)
        return plan(self.current, fleet, prune=prune, without_notice=without_notice)

    def apply(
        self,
        *resources: Resource,
        prune: bool = True,
        without_notice: bool = False,
        stop_after: int = 999,
    ) -> Plan:
        found = self.plan(*resources, prune=prune, without_notice=without_notice)
        refuse_plan(found, force=False)
        for step in found.declares[:stop_after]:
            self.do(step.scope_id, self.declaration(step))
        for scope in found.creates[: max(stop_after - len(found.declares), 0)]:
            assert scope.id not in self.scopes
            self.scopes[scope.id] = scope
            self.refuse_shared_address()
        return found

    def declaration(self, step: Step) -> Declare:
        everyone = self.scopes[step.scope_id].roster.live
        return Declare(
            roster=step.roster,
            terminates={each.name: event_id(next(self.ids)) for each in everyone},
            without_notice=step.without_notice,
        )

    def watch(self) -> None:
        for scope in self.current:
            self.do(scope.id, Activate())

    def do(self, scope_id: ScopeId, command: Command) -> None:
        change = decide(self.scopes[scope_id], command, T0)
        self.scopes[scope_id] = change.scope
        self.refuse_shared_address()

    def remove(self, scope: Scope, *gone: str) -> None:
        (step,) = removal(scope, names(*gone)).declares
        self.do(scope.id, self.declaration(step))

    def refuse_shared_address(self) -> None:
        given = [a for scope in self.current for each in scope.roster.live for a in each.addresses]
        assert len(given) == len(set(given)), "an address is given out twice"

    def live(self, name: str) -> list[Instance]:
        mine = (each.roster for each in self.current if each.roster.resource == name)
        return [each for roster in mine for each in roster.live]

    def names(self, name: str) -> list[str]:
        return [each.name for each in self.live(name)]

    def only(self) -> Scope:
        (scope,) = self.scopes.values()
        return scope


def vm(name: str, *addresses: str, place: Place = FILE) -> VirtualMachine:
    return VirtualMachine(name=name, addresses=addresses, place=place)


def web(*members: str, update_domains: int = 5, fault_domains: int = 2) -> AvailabilitySet:
    return AvailabilitySet(
        name="web",
        members=tuple(Member(name=each) for each in members),
        update_domains=update_domains,
        fault_domains=fault_domains,
        place=FILE,
    )


def pool(capacity: int, *addresses: str, notice_ms: int | None = None) -> ScaleSet:
    return ScaleSet(
        name="pool",
        capacity=capacity,
        addresses=addresses,
        terminate_notice_ms=notice_ms,
        place=FILE,
    )


def flexible(capacity: int) -> ScaleSet:
    return ScaleSet(
        name="pool",
        capacity=capacity,
        orchestration=Orchestration.FLEXIBLE,
        suffixes=tuple(text for text, _ in zip(suffixes_of("pool"), range(capacity), strict=False)),
        place=FILE,
    )


def said(found: Plan) -> list[str]:
    return [f"{each.action} {each.what}: {each.detail}".rstrip(": ") for each in found.changes]


def test_a_new_resource_is_created_and_then_there_is_nothing_to_do() -> None:
    world = World()
    found = world.apply(web("a", "b"))
    assert said(found) == [f"add scope {world.only().id}: a, b"]
    assert world.plan(web("a", "b")) == Plan()


def test_what_the_file_no_longer_names_is_removed() -> None:
    world = World(vm("db"), vm("cache"))
    found = world.apply(vm("db"))
    assert [each.action for each in found.changes] == [Action.REMOVE]
    assert [scope.roster.resource for scope in world.current if exists(scope)] == ["db"]
    assert world.plan(vm("db")) == Plan()


@pytest.mark.parametrize("origin", ["file", "starter", "api", "arm"])
def test_only_what_came_from_a_file_is_pruned(origin: str) -> None:
    world = World(vm("db", place=Place(origin=origin)))
    found = world.apply(vm("cache"))
    is_pruned = origin in ("file", "starter")
    assert exists(world.current[0]) is not is_pruned
    assert found.kept == (() if is_pruned else (world.current[0].id,))


def test_without_pruning_others_are_left_alone() -> None:
    world = World(vm("db"))
    found = world.apply(vm("cache"), prune=False)
    assert [each.action for each in found.changes] == [Action.ADD]
    assert found.kept == ()


def test_a_file_takes_over_what_was_made_otherwise() -> None:
    world = World(vm("db", place=Place(origin="api")))
    assert said(world.apply(vm("db"))) == [f"change scope {world.only().id}: origin api → file"]


def test_a_removed_resource_can_be_declared_again() -> None:
    world = World(vm("db"))
    world.apply()
    found = world.apply(vm("db"))
    assert not found.creates, "its id is still in the store"
    assert said(found) == [f"add scope {world.only().id}: db"]
    assert exists(world.only())


def test_a_change_is_told_in_words() -> None:
    world = World(vm("db", "10.0.0.1"))
    assert said(world.plan(vm("db", "10.0.0.2"))) == [
        "change instance db: addresses 10.0.0.1 → 10.0.0.2"
    ]
    moved = vm("db", "10.0.0.1", place=Place(origin="file", location="north", test=True))
    assert said(world.plan(moved)) == [
        f"change scope {world.only().id}: location local → north; test false → true"
    ]


def test_a_secret_of_a_driver_is_not_told() -> None:
    def hook(url: str) -> VirtualMachine:
        settings = {"url": url}
        return vm("db", place=Place(origin="file", driver="webhook", driver_settings=settings))

    world = World(hook("https://a"))
    assert said(world.plan(hook("https://b"))) == [
        f"change scope {world.only().id}: driver settings url changed"
    ]


def test_who_stays_keeps_the_place() -> None:
    world = World(web("a", "b", "c", update_domains=3))
    world.apply(web("c", "b", "d", update_domains=3))
    assert {each.name: each.update_domain for each in world.live("web")} == {
        "c": 2,
        "b": 1,
        "d": 0,
    }


def test_fewer_domains_move_only_those_who_must() -> None:
    world = World(web("a", "b", "c", update_domains=3, fault_domains=3))
    found = world.apply(web("a", "b", "c", update_domains=2, fault_domains=3))
    assert said(found)[1:] == ["change instance c: update domain 2 → 0"]


def test_a_place_that_is_given_wins() -> None:
    members = (Member(name="a", update_domain=1, fault_domain=1), Member(name="b"))
    world = World(web("a", "b"))
    world.apply(AvailabilitySet(name="web", members=members, place=FILE))
    places = [(each.update_domain, each.fault_domain) for each in world.live("web")]
    assert places == [(1, 1), (1, 1)]


def test_each_role_of_a_cloud_service_is_spread_for_itself() -> None:
    def shop(**roles: int) -> CloudService:
        return CloudService(name="shop", roles=roles, update_domains=2, place=FILE)

    world = World(shop(Front=1, Back=1))
    world.apply(shop(Front=3, Back=2))
    assert {each.name: each.update_domain for each in world.live("shop")} == {
        "Front_IN_0": 0,
        "Front_IN_1": 1,
        "Front_IN_2": 0,
        "Back_IN_0": 0,
        "Back_IN_1": 1,
    }


def test_a_scale_set_grows_with_new_numbers_and_shrinks_from_the_highest() -> None:
    world = World(pool(3))
    world.apply(pool(2))
    assert world.names("pool") == ["pool_0", "pool_1"]
    world.apply(pool(3))
    assert world.names("pool") == ["pool_0", "pool_1", "pool_3"]


def test_a_scale_set_shrinks_from_the_highest_number_in_whatever_group_it_is() -> None:
    world = World(pool(150))
    world.remove(world.current[0], "pool_5")
    world.apply(pool(150))
    assert world.current[0].roster.has_live(InstanceName("pool_150"))
    world.apply(pool(149))
    assert "pool_150" not in world.names("pool")
    assert "pool_149" in world.names("pool")


def test_an_empty_scale_set_goes_on_counting_and_a_removed_one_begins_at_0() -> None:
    world = World(pool(3))
    world.apply(pool(0))
    world.apply(pool(1))
    assert world.names("pool") == ["pool_3"]
    world.apply()
    world.apply(pool(1))
    assert world.names("pool") == ["pool_0"]


def test_numbers_are_unique_over_all_placement_groups() -> None:
    world = World(pool(150))
    assert [len(each.roster.live) for each in world.current] == [100, 50]
    first = world.current[0]
    world.remove(first, "pool_7", "pool_8")
    world.apply(pool(203))
    assert [len(each.roster.live) for each in world.current] == [100, 100, 3]
    everyone = world.names("pool")
    assert len(set(everyone)) == 203
    assert "pool_7" not in everyone
    assert everyone[98:100] == ["pool_150", "pool_151"]
    assert world.plan(pool(203)) == Plan()


def test_a_further_group_is_of_the_model_of_the_others() -> None:
    world = World(pool(99))
    model = ChangeModel(
        terminate_notice_ms=None, reimage_notice_ms=15 * MINUTE_MS, profile="image 1"
    )
    world.do(world.only().id, model)
    world.apply(pool(101, notice_ms=5 * MINUTE_MS))
    first, second = (each.roster for each in world.current)
    assert first.model == second.model
    assert (first.model.reimage_notice_ms, first.model.profile) == (15 * MINUTE_MS, "image 1")
    assert all(second.latest_model_applied(each) for each in second.live)


def test_a_scale_set_that_shrinks_empties_its_last_groups() -> None:
    world = World(pool(250))
    found = world.apply(pool(99))
    assert [len(each.roster.live) for each in world.current] == [99, 0, 0]
    assert [each.action for each in found.changes] == [Action.REMOVE] * 3


def test_a_placement_group_that_was_emptied_gives_no_number_again() -> None:
    world = World(pool(150))
    world.apply(pool(99))
    world.apply(pool(101))
    assert world.names("pool")[98:] == ["pool_98", "pool_150", "pool_151"]


def test_a_flexible_scale_set_keeps_whoever_lives_under_any_name() -> None:
    world = World(flexible(2))
    scope = world.only()
    world.do(scope.id, AddInstances(instances=(Instance(name=InstanceName("pool_own")),)))
    world.remove(world.only(), scope.roster.live[0].name)
    before = world.names("pool")
    world.apply(flexible(3))
    assert world.names("pool")[:2] == before
    assert scope.roster.live[0].name not in world.names("pool"), "a name is not reused at once"


def test_addresses_stay_with_those_who_have_them() -> None:
    world = World(pool(3, "10.0.0.1", "10.0.0.2", "10.0.0.3"))
    world.remove(world.only(), "pool_0")
    world.apply(pool(3, "10.0.0.1", "10.0.0.2", "10.0.0.3"))
    assert [(each.name, *each.addresses) for each in world.live("pool")] == [
        ("pool_1", "10.0.0.2"),
        ("pool_2", "10.0.0.3"),
        ("pool_3", "10.0.0.1"),
    ]


def test_a_terminate_notice_raises_the_generation_once() -> None:
    world = World(pool(1))
    world.apply(pool(2, notice_ms=5 * MINUTE_MS))
    roster = world.only().roster
    assert roster.model.generation == 2
    assert [roster.latest_model_applied(each) for each in roster.live] == [False, True]
    assert world.plan(pool(2, notice_ms=5 * MINUTE_MS)) == Plan()


def delete(world: World, *gone: str) -> None:
    """Asked for by their owner and announced, so they stay for the time of the notice."""
    scope = next(each for each in world.current if each.roster.has_live(InstanceName(gone[0])))
    world.do(scope.id, Activate())
    targets = tuple((event_id(n), name) for n, name in enumerate(names(*gone), start=1))
    world.do(scope.id, OperateAll(kind=OperationKind.DELETE, targets=targets))


def test_whoever_is_about_to_be_deleted_is_not_counted_and_not_touched() -> None:
    notice = 5 * MINUTE_MS
    before = pool(3, "10.0.0.1", "10.0.0.2", "10.0.0.3", notice_ms=notice)
    world = World(before)
    delete(world, "pool_1")
    found = world.apply(replace(before, tags={"a": "b"}))
    assert said(found) == [
        "change instance pool_0: tags none → a=b",
        "change instance pool_2: tags none → a=b",
        "add instance pool_3",
    ]
    (going,) = (each for each in world.live("pool") if each.name == "pool_1")
    assert (going.name, going.addresses, going.tags) == ("pool_1", ("10.0.0.2",), {})
    assert world.only().unfinished, "nothing was cancelled"


def test_a_set_whose_instances_all_go_gets_others() -> None:
    world = World(pool(2, notice_ms=5 * MINUTE_MS))
    delete(world, "pool_0", "pool_1")
    world.apply(pool(2, notice_ms=5 * MINUTE_MS))
    assert sorted(world.names("pool")) == ["pool_0", "pool_1", "pool_2", "pool_3"]


def test_whoever_is_about_to_be_deleted_needs_its_place_but_not_its_domain() -> None:
    world = World(pool(100, notice_ms=5 * MINUTE_MS))
    domain = world.live("pool")[3].update_domain
    delete(world, "pool_3")
    world.apply(pool(100, notice_ms=5 * MINUTE_MS))
    assert [len(each.roster.live) for each in world.current] == [100, 1]
    world = World(pool(5, notice_ms=5 * MINUTE_MS))
    delete(world, "pool_3")
    world.apply(pool(5, notice_ms=5 * MINUTE_MS))
    (newcomer,) = (each for each in world.live("pool") if each.name == "pool_5")
    assert newcomer.update_domain == domain


def test_an_address_passes_from_one_scope_to_another() -> None:
    world = World(vm("a", "10.0.0.1"), vm("b"))
    world.apply(vm("b", "10.0.0.1"), vm("a"))
    assert world.live("b")[0].addresses == ("10.0.0.1",)
    world.apply(vm("c", "10.0.0.1"))
    assert world.live("c")[0].addresses == ("10.0.0.1",)


def test_scopes_trade_addresses() -> None:
    world = World(vm("a", "10.0.0.1"), vm("b", "10.0.0.2"))
    found = world.apply(vm("a", "10.0.0.2"), vm("b", "10.0.0.1"))
    assert len(found.changes) == 2
    assert world.live("a")[0].addresses == ("10.0.0.2",)


def test_a_scope_trades_with_two_others() -> None:
    world = World(vm("a", "10.0.0.1"), vm("b", "10.0.0.2"), vm("c", "10.0.0.3", "10.0.0.4"))
    world.apply(vm("a", "10.0.0.3"), vm("b", "10.0.0.4"), vm("c", "10.0.0.1", "10.0.0.2"))
    assert world.live("c")[0].addresses == ("10.0.0.1", "10.0.0.2")


@pytest.mark.parametrize("prune", [False, True])
def test_an_address_of_somebody_who_stays_is_refused_before_anything_changes(prune: bool) -> None:
    world = World(vm("own", "10.0.0.1", place=Place(origin="api")))
    with pytest.raises(Refused) as refused:
        world.plan(vm("a", "10.0.0.1"), prune=prune)
    assert refused.value.code is Code.ADDRESS_IN_USE


def test_a_resource_is_declared_once() -> None:
    with pytest.raises(Refused) as refused:
        World().plan(vm("db"), vm("db"))
    assert refused.value.code is Code.SCOPE_EXISTS


def test_a_plan_names_the_events_that_it_would_cancel_and_is_refused_as_a_whole() -> None:
    world = World(vm("a", "10.0.0.1"), web("x", "y"))
    reboot = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("x"))
    world.do(world.current[1].id, reboot)
    found = world.plan(web("y"))
    assert [(each.what, each.events) for each in found.changes] == [
        (f"scope {world.current[0].id}", ()),
        ("instance x", (E1,)),
    ]
    with pytest.raises(Refused) as refused:
        refuse_plan(found, force=False)
    assert refused.value.code is Code.INSTANCE_HAS_EVENT
    refuse_plan(found, force=True)


def test_an_empty_set_of_several_groups_is_removed_once() -> None:
    world = World(pool(150))
    assert len(said(removal_of_all(world.current))) == 2, "each group names its instances"
    world.apply(pool(0))
    assert len(world.current) == 2
    found = removal_of_all(world.current)
    assert said(found) == [f"remove scope {world.current[0].id}: no instances"]
    assert {step.scope_id for step in found.declares} == {each.id for each in world.current}


def test_removing_is_planned_as_well() -> None:
    scope = World(web("a", "b")).only()
    assert said(removal(scope, names("a"))) == ["remove instance a"]
    assert said(removal(scope)) == [f"remove scope {scope.id}: a, b"]
    with pytest.raises(Refused) as refused:
        removal(scope, names("nobody"))
    assert refused.value.code is Code.UNKNOWN_INSTANCE


def test_a_set_does_not_change_between_uniform_and_flexible() -> None:
    world = World(pool(2))
    with pytest.raises(Refused) as refused:
        world.apply(flexible(2))
    assert refused.value.code is Code.FLEET_INVALID
    world.apply()
    world.apply(flexible(2))
    assert len(world.names("pool")) == 2


def test_two_spellings_that_are_there_stay_and_none_is_added() -> None:
    world = World(vm("a"))
    world.scopes |= World(vm("A")).scopes
    assert world.plan(vm("a"), vm("A")) == Plan()
    for wanted in ([vm("a"), vm("A"), vm("b"), vm("B")], [vm("b"), vm("B")]):
        with pytest.raises(Refused, match="differs only in spelling"):
            world.plan(*wanted)


def test_a_name_in_two_sets_is_a_warning_with_how_to_name_each() -> None:
    members = (Member(name="front-0"),)
    world = World(AvailabilitySet(name="web", members=members, place=FILE))
    twin = AvailabilitySet(name="twin", members=members, place=FILE)
    (warning,) = world.plan(twin, prune=False).warnings
    assert "twin/front-0 or web/front-0" in warning
    assert "/vm/twin/front-0" in warning
    assert world.plan(twin, prune=True).warnings == ()
