"""Any file, applied to any fleet, leads to what it says."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import Roster
from fairwarning.core.resources import (
    AvailabilitySet,
    Member,
    Resource,
    ScaleSet,
    VirtualMachine,
    expand,
)
from fairwarning.fleet_file.plan import exists
from tests.fleet_file.test_plan import FILE, World, pool, vm


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Resource, ...]:
    """Few names and few addresses, so that fleets get in each other's way."""
    free = draw(st.permutations([f"10.0.0.{n}" for n in range(6)]))
    left = list(free)

    def some(most: int) -> tuple[str, ...]:
        return tuple(left.pop() for _ in range(draw(st.integers(0, min(most, len(left))))))

    alone = draw(st.sets(st.sampled_from("abc")))
    resources: list[Resource] = [vm(name, *some(2)) for name in sorted(alone)]
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from("uvwxyz"), unique=True, max_size=4))
        members = tuple(Member(name=each, addresses=some(1)) for each in chosen)
        domains = draw(st.integers(1, 3))
        resources.append(
            AvailabilitySet(name="web", members=members, update_domains=domains, place=FILE)
        )
    if draw(st.booleans()):
        capacity = draw(st.sampled_from([0, 1, 2, 3, 101]))
        resources.append(pool(capacity, *some(capacity), notice_ms=draw(notices)))
    return tuple(resources)


notices = st.sampled_from([None, 5 * MINUTE_MS, 10 * MINUTE_MS])


@given(fleets(), fleets(), st.integers(0, 4))
def test_applying_leads_to_the_file_even_when_interrupted(
    first: Sequence[Resource], second: Sequence[Resource], steps: int
) -> None:
    world = World(*first)
    world.apply(*second, stop_after=steps)
    world.apply(*second)
    assert not world.plan(*second).changes, "the second time there is nothing left to do"
    declared = {
        resource.name for resource in second if any(s.roster.is_standing for s in expand(resource))
    }
    assert {scope.roster.resource for scope in world.current if exists(scope)} == declared
    for resource in second:
        if isinstance(resource, VirtualMachine | AvailabilitySet):
            (scope,) = expand(resource)
            assert _addresses(world.scopes[scope.id].roster) == _addresses(scope.roster)
        elif isinstance(resource, ScaleSet):
            assert len(world.live("pool")) == resource.capacity
            given_out = {a for each in world.live("pool") for a in each.addresses}
            assert given_out == set(resource.addresses)


def _addresses(roster: Roster) -> dict[str, tuple[str, ...]]:
    return {each.name: each.addresses for each in roster.live}


@given(fleets(), fleets())
def test_a_roster_that_is_declared_is_what_the_plan_said(
    first: Sequence[Resource], second: Sequence[Resource]
) -> None:
    world = World(*first)
    before = {scope.id: scope.roster for scope in world.current}
    found = world.apply(*second)
    told = {each.scope for each in found.changes}
    for scope in world.current:
        if scope.id not in told:
            assert scope.roster == before[scope.id]
        elif scope.id in before:
            assert scope.roster != before[scope.id]
