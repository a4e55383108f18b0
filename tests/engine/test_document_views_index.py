"""What the views know of the whole fleet: scopes, names, deleted instances and polling rates."""

from collections.abc import Iterable
from itertools import count

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import BeginAnew
from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName, Scope, ScopeId
from fairwarning.core.resources import AvailabilitySet, Member, Place, Resource, ScaleSet, expand
from fairwarning.engine import document_views
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Receipt
from fairwarning.stores.memory import MemoryStore

revisions = count(1)


async def never(scope_id: ScopeId, command: BeginAnew) -> Receipt:
    raise AssertionError(f"{scope_id} needs no new activation")


def shown(*resources: Resource) -> Views:
    views = Views(MemoryStore(VirtualClock()), never)
    for resource in resources:
        for scope in expand(resource):
            views.put(newer(scope))
    return views


def newer(scope: Scope) -> Scope:
    return replace(scope, revision=next(revisions))


def a_set(name: str, members: Iterable[str], *, test: bool = False) -> AvailabilitySet:
    place = Place(test=test)
    return AvailabilitySet(name=name, members=tuple(Member(name=n) for n in members), place=place)


def ends(ids: Iterable[str]) -> list[str]:
    return ["/".join(id.split("/")[2:]) for id in ids]


def without(scope: Scope, *gone: str) -> Scope:
    """The scope after these instances were deleted."""
    roster = scope.roster
    dead = {
        name: replace(roster.instances[InstanceName(name)], deleted_ms=Instant(1)) for name in gone
    }
    return newer(replace(scope, roster=replace(roster, instances={**roster.instances, **dead})))


def test_a_name_is_found_in_each_scope_until_its_instance_is_deleted() -> None:
    views = shown(a_set("a", ["x", "y"]), a_set("b", ["x"]), a_set("c", ["x"]))
    assert ends(m.view.scope_id for m in views.by_name("x")) == [
        "availability-set/a", "availability-set/b", "availability-set/c"
    ]  # fmt: skip
    (scope,) = expand(a_set("b", ["x"]))
    (member,) = (each for each in views.by_name("x") if each.view.scope_id == scope.id)
    views.put(without(scope, "x"))
    assert not member.is_live
    assert ends(m.view.scope_id for m in views.by_name("x")) == [
        "availability-set/a", "availability-set/c"
    ]  # fmt: skip
    assert views.deleted("x") == [scope.id]
    assert not views.has_scope(scope.id)
    assert scope.id not in views.ids()
    views.put(newer(scope))
    assert views.deleted("x") == []
    assert views.has_scope(scope.id)
    assert len(views.by_name("x")) == 3


def test_the_last_of_a_name_leaves_nothing_behind() -> None:
    views = shown(a_set("a", ["x", "y"]))
    (scope,) = expand(a_set("a", ["x", "y"]))
    views.put(without(scope, "x"))
    assert (views.by_name("x"), len(views.by_name("y"))) == ([], 1)
    assert views.some_names(5) == ["y"]


def set_of(*sizes: int) -> list[Scope]:
    """A scale set whose placement groups have so many instances."""
    (first,) = expand(ScaleSet(name="workers", capacity=1))
    home, (instance,) = first.id.rpartition("/")[0], first.roster.live
    found = []
    for number, size in enumerate(sizes):
        instances = {
            InstanceName(f"workers_{number}-{n}"): replace(
                instance, name=InstanceName(f"workers_{number}-{n}")
            )
            for n in range(size)
        }
        roster = replace(first.roster, instances=instances)
        found.append(newer(replace(first, id=ScopeId(f"{home}/{number}"), roster=roster)))
    return found


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [((0,), [0]), ((0, 0, 0), [0]), ((0, 2), [1]), ((2, 0), [0]), ((0, 1, 0, 1), [1, 3])],
)
async def test_an_empty_scale_set_has_one_id_and_others_those_with_instances(
    sizes: tuple[int, ...], groups: list[int]
) -> None:
    views = shown()
    scopes = set_of(*sizes)
    for scope in scopes:
        views.put(scope)
    assert views.ids() == [scopes[group].id for group in groups]
    assert [views.has_scope(each.id) for each in scopes] == [n in groups for n in range(len(sizes))]
    assert (await views.summary())[:2] == (len(groups), sum(sizes))


def test_a_removed_scale_set_has_no_id() -> None:
    views = shown()
    (scope,) = set_of(0)
    views.put(scope)
    before = views.generation
    views.put(newer(replace(scope, roster=replace(scope.roster, is_removed=True))))
    assert views.ids() == []
    assert views.generation > before


async def test_a_resource_has_its_groups_in_the_order_of_their_numbers() -> None:
    views = shown(a_set("b", ["x"]))
    scopes = set_of(*[1] * 11)
    for scope in reversed(scopes):
        views.put(scope)
    views.put(*expand(a_set("a", ["y"])))
    found = await views.resources()
    assert ends(found) == ["availability-set/a", "availability-set/b", "scale-set/workers"]
    assert list(found.values())[-1] == [each.id for each in scopes]
    views.put(*expand(a_set("c", ["z"])))
    assert len(await views.resources()) == 4


def test_a_scope_is_called_by_its_last_part_or_the_one_before_a_group() -> None:
    views = shown(a_set("web", ["x"]), ScaleSet(name="workers", capacity=1))
    assert ends(views.scopes_called("web")) == ["availability-set/web"]
    assert ends(views.scopes_called("workers")) == ["scale-set/workers/0"]
    assert views.scopes_called("db") == ()
    views.put(*expand(a_set("db", ["y"])))
    assert ends(views.scopes_called("db")) == ["availability-set/db"]


async def test_a_search_finds_ids_and_names_in_any_case_and_in_order() -> None:
    views = shown(a_set("Web", ["front-1"]), a_set("db", ["Front-2", "x"]), a_set("api", ["y"]))
    assert ends(await views.search("FRONT")) == ["availability-set/Web", "availability-set/db"]
    assert ends(await views.search("wEB")) == ["availability-set/Web"]
    assert await views.search("nothing") == []


async def test_names_are_found_in_any_case_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_views, "SEARCH_SLICE", 2)
    views = shown(a_set("a", ["Web-4", "web-3", "db-1", "wEB-2", "web-1"]))
    assert await views.find_names("WEB", 9) == ["Web-4", "wEB-2", "web-1", "web-3"]
    assert await views.find_names("eb-1", 9) == ["web-1"]
    assert len(await views.find_names("web", 3)) == 3
    assert await views.find_names("db", 1) == ["db-1"]
    assert await views.find_names("none", 9) == []


def test_some_names_are_in_order_and_limited() -> None:
    views = shown(a_set("a", ["c", "a", "d", "b"]))
    assert views.some_names(3) == ["a", "b", "c"]


def test_only_a_test_fleet_with_instances_counts_as_one() -> None:
    views = shown(a_set("a", ["x"]))
    assert not views.has_test_scope()
    (scope,) = expand(a_set("t", ["y"], test=True))
    views.put(newer(scope))
    assert views.has_test_scope()
    assert views.test_views() == []  # Nobody has asked yet.
    views.put(newer(replace(scope, activated_ms=Instant(1))))
    assert [each.scope_id for each in views.test_views()] == [scope.id]
    views.put(without(scope, "y"))
    assert not views.has_test_scope()


async def test_a_sample_counts_the_polls_since_the_last_one() -> None:
    views = shown(a_set("a", ["x", "y"]))
    (x,), (y,) = views.by_name("x"), views.by_name("y")
    x.polls = 30
    views.sample(now_s=100.0, since_s=15.0)
    assert (x.per_minute, x.last_s, y.per_minute, y.last_s) == (120.0, 100.0, 0.0, 0.0)
    assert await views.summary() == (1, 2, 1)
    x.polls += 1
    views.sample(now_s=160.0, since_s=60.0)
    assert (x.per_minute, x.last_s) == (1.0, 160.0)
    views.sample(now_s=220.0, since_s=60.0)
    assert (x.per_minute, x.last_s) == (1.0, 160.0)


def test_a_scope_is_asked_if_a_poll_waits_or_came_since_the_last_note() -> None:
    views = shown(a_set("a", ["x"]))
    (member,) = views.by_name("x")
    view = member.view
    assert not views.is_asked(view.scope_id)
    assert not views.is_asked(ScopeId("none"))
    view.is_asked = True
    assert views.is_asked(view.scope_id)
    view.is_asked = False
    view.listen(test_some_names_are_in_order_and_limited)
    assert views.is_asked(view.scope_id)
    assert views.asked() == [view]
    view.forget(test_some_names_are_in_order_and_limited)
    view.forget(test_some_names_are_in_order_and_limited)
    assert views.asked() == []
