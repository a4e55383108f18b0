"""What is packed is what an instance may ask about itself, and nothing is kept of the deleted."""

from msgspec.structs import replace

from fairwarning.core.model import Instance, InstanceName, Roster, ScopeId
from fairwarning.core.resources import AvailabilitySet, Member, expand
from fairwarning.engine import packed_rosters
from fairwarning.engine.packed_rosters import PackedRosters
from fairwarning.metadata.instance_metadata import INSTANCE_VERSIONS, tree
from tests.core.builders import T0, workers

SET, VERSION = workers(3), INSTANCE_VERSIONS[-1]
(PLAIN,) = expand(
    AvailabilitySet(
        name="web", members=(Member(name="web-0", addresses=("10.0.0.1", "::1"), tags={"a": "b"}),)
    )
)


def test_an_unpacked_instance_has_the_same_metadata() -> None:
    rosters = PackedRosters()
    for scope in (SET, PLAIN):
        rosters.put(scope.id, scope.roster)
        for name, instance in scope.roster.instances.items():
            found = rosters.find(scope.id, name)
            assert found is not None
            assert tree(*found, VERSION) == tree(scope, instance, VERSION)


def test_an_instance_that_is_deleted_or_unknown_is_not_found() -> None:
    rosters = PackedRosters()
    assert rosters.find(SET.id, InstanceName("workers_0")) is None
    rosters.put(SET.id, SET.roster)
    assert rosters.find(SET.id, InstanceName("workers_9")) is None
    gone = replace(SET.roster.instances[InstanceName("workers_0")], deleted_ms=T0)
    rosters.put(SET.id, replace(SET.roster, instances={**SET.roster.instances, gone.name: gone}))
    assert rosters.find(SET.id, gone.name) is None
    rosters.remove(SET.id)
    assert rosters.find(SET.id, InstanceName("workers_1")) is None


def test_a_scope_that_is_removed_and_put_again_unchanged_is_found() -> None:
    rosters, name = PackedRosters(), InstanceName("workers_1")
    rosters.put(SET.id, SET.roster)
    rosters.remove(SET.id)
    rosters.put(SET.id, SET.roster)
    assert rosters.find(SET.id, name) is not None


def test_a_changed_roster_is_packed_again_and_old_ones_are_not_remembered() -> None:
    rosters, name = PackedRosters(), InstanceName("vm")
    for number in range(packed_rosters.RECENT_MAX + 2):
        rosters.put(ScopeId(f"vm/{number}"), _roster("1"))
    assert len(rosters._recent) == packed_rosters.RECENT_MAX
    rosters.put(ScopeId("vm/0"), _roster("2"))
    found = rosters.find(ScopeId("vm/0"), name)
    assert found is not None
    assert found[1].tags == {"version": "2"}


def _roster(version: str) -> Roster:
    instance = Instance(name=InstanceName("vm"), tags={"version": version})
    return Roster(
        kind=PLAIN.roster.kind,
        subscription="s",
        resource_group="g",
        resource="vm",
        instances={instance.name: instance},
    )
