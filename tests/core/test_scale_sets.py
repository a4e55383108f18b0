"""Who stays, who goes and where newcomers live, whatever a scale set has been through."""

from collections import Counter
from itertools import count

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.commands import (
    Activate,
    AddInstances,
    Command,
    OperateAll,
    ReportDone,
    Schedule,
)
from fairwarning.core.decide import decide
from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import (
    EventId,
    EventType,
    EvictionPolicy,
    Instance,
    InstanceName,
    OperationKind,
    Priority,
    Scope,
)
from fairwarning.core.resources import Orchestration, Place, ScaleSet, expand
from fairwarning.core.scale_sets import (
    declared_rosters,
    grow,
    instance_template,
    members,
    new_instances,
)

NOW = Instant(1_700_000_000_000)


class Set:
    """A scale set on the pure rules alone, with a word on everybody who ever was in it."""

    def __init__(self, orchestration: Orchestration, capacity: int = 0) -> None:
        suffixes = tuple(f"{n:08}" for n in range(capacity))
        resource = ScaleSet(
            name="s", capacity=capacity, orchestration=orchestration, suffixes=suffixes
        )
        self.groups = list(expand(resource))
        self._ids = count(1)
        self.ever = [instance.name for _, instance in members(self.groups)]

    def new_id(self) -> EventId:
        return EventId(f"00000000-0000-4000-8000-{next(self._ids):012X}")

    def submit(self, scope: Scope, command: Command) -> None:
        at = next(n for n, each in enumerate(self.groups) if each.id == scope.id)
        self.groups[at] = decide(self.groups[at], command, NOW).scope

    def resize(self, capacity: int, *, is_over_at_once: bool) -> None:
        surplus = members(self.groups)[capacity:]
        for scope in list(self.groups):
            targets = tuple((self.new_id(), i.name) for s, i in surplus if s.id == scope.id)
            if targets:
                self.submit(scope, OperateAll(kind=OperationKind.DELETE, targets=targets))
            for id, _ in targets if is_over_at_once else ():
                self.submit(scope, ReportDone(event_id=id))
        self.grow(capacity - len(members(self.groups)))

    def grow(self, number: int) -> None:
        arriving = new_instances(
            self.groups,
            number,
            template=instance_template(self.groups),
            addresses=(),
            new_id=self.new_id,
        )
        self.ever += [each.name for each in arriving]
        growth = grow(self.groups, arriving)
        for scope, own in growth.added:
            self.submit(scope, AddInstances(instances=own))
        self.groups += growth.created


@settings(max_examples=25)
@given(
    orchestration=st.sampled_from(Orchestration),
    sizes=st.lists(st.tuples(st.integers(0, 230), st.booleans()), max_size=5),
)
# The first group comes to have a higher number than the last one.
@example(Orchestration.UNIFORM, [(101, True), (99, True), (100, True), (101, True)])
def test_any_sequence_of_sizes_is_reached_and_no_name_is_given_out_twice(
    orchestration: Orchestration, sizes: list[tuple[int, bool]]
) -> None:
    scale_set = Set(orchestration, capacity=3)
    for capacity, is_over_at_once in sizes:
        scale_set.resize(capacity, is_over_at_once=is_over_at_once)
        assert len(members(scale_set.groups)) == capacity
        assert all(len(each.roster.live) <= SCOPE_INSTANCES_MAX for each in scale_set.groups)
    assert len(set(scale_set.ever)) == len(scale_set.ever)


def test_it_shrinks_from_the_highest_number_and_not_by_the_alphabet() -> None:
    scale_set = Set(Orchestration.UNIFORM, capacity=12)
    names = [instance.name for _, instance in members(scale_set.groups)]
    assert names[-3:] == ["s_9", "s_10", "s_11"]


def test_those_about_to_be_deleted_do_not_count_but_need_their_place() -> None:
    scale_set = Set(Orchestration.UNIFORM, capacity=100)
    scale_set.resize(60, is_over_at_once=False)
    assert len(members(scale_set.groups)) == 60
    scale_set.resize(70, is_over_at_once=False)
    first, second = scale_set.groups
    assert (len(first.roster.live), len(second.roster.live)) == (100, 10)
    assert second.roster.instances[InstanceName("s_100")].model == first.roster.model


def test_a_terminate_that_the_platform_rehearses_is_no_delete_that_somebody_asked_for() -> None:
    (scope,) = expand(ScaleSet(name="s", capacity=2, place=Place(test=True)))
    rehearsal = Schedule(
        event_id=EventId("00000000-0000-4000-8000-000000000001"),
        type=EventType.TERMINATE,
        targets=(InstanceName("s_1"),),
    )
    scope = decide(decide(scope, Activate(), NOW).scope, rehearsal, NOW).scope
    assert len(members([scope])) == 2


def test_newcomers_go_in_turn_to_where_the_fewest_are() -> None:
    scale_set = Set(Orchestration.UNIFORM, capacity=7)
    scale_set.resize(4, is_over_at_once=True)
    scale_set.grow(107)
    for scope in scale_set.groups:
        for domain in ("update_domain", "fault_domain"):
            crowds = Counter(getattr(each, domain) for each in scope.roster.live)
            assert max(crowds.values()) - min(crowds.values()) <= 1


def test_who_takes_the_place_of_another_gets_its_domains() -> None:
    """Otherwise a replaced instance would leave its update domain empty and crowd another."""
    (scope,) = expand(ScaleSet(name="s", capacity=5))
    arriving = [Instance(name=InstanceName("s_5"))]
    ((_, (newcomer,)),) = grow([scope], arriving, leaving=InstanceName("s_2")).added
    assert (newcomer.update_domain, newcomer.fault_domain) == (2, 2)


def test_newcomers_are_like_who_was_there_but_for_what_is_a_machines_own() -> None:
    resource = ScaleSet(name="s", capacity=1, tags={"a": "b"}, priority=Priority.SPOT,
                        addresses=("10.0.0.1",))  # fmt: skip
    groups = expand(resource)
    (one, two) = new_instances(
        groups, 2, template=instance_template(groups), addresses=["10.0.0.2"], new_id=lambda: "x"
    )
    assert (one.name, one.addresses, dict(one.tags)) == ("s_1", ("10.0.0.2",), {"a": "b"})
    assert (two.addresses, two.priority, two.handle) == ((), Priority.SPOT, "")
    template = replace(one, eviction=EvictionPolicy.DELETE)
    (three,) = new_instances(groups, 1, template=template, addresses=(), new_id=lambda: "x")
    assert three.eviction is EvictionPolicy.DELETE
    assert instance_template(expand(ScaleSet(name="s"))) == Instance(name=InstanceName("any"))


def test_a_further_group_has_the_notice_of_the_others() -> None:
    resource = ScaleSet(name="s", capacity=100, terminate_notice_ms=5 * MINUTE_MS)
    groups = expand(resource)
    arriving = new_instances(
        groups, 1, template=instance_template(groups), addresses=(), new_id=lambda: "x"
    )
    (created,) = grow(groups, arriving).created
    assert created.id.endswith("/scale-set/s/1")
    assert created.roster.instances[InstanceName("s_100")].model.terminate_notice_ms
    assert created.roster.next_number == 101


def test_a_further_group_of_a_set_that_was_removed_is_not_removed() -> None:
    (scope,) = expand(ScaleSet(name="s", capacity=SCOPE_INSTANCES_MAX))
    full = replace(scope, roster=replace(scope.roster, is_removed=True))
    growth = grow([full], [Instance(name=InstanceName("s_100"))])
    (further,) = growth.created
    assert not further.roster.is_removed


def test_a_set_that_becomes_uniform_counts_from_0() -> None:
    """The numbers of a flexible set are no instance ids, so none of them is used up."""
    (scope,) = expand(
        ScaleSet(
            name="s", capacity=3, orchestration=Orchestration.FLEXIBLE, suffixes=("a", "b", "c")
        )
    )
    emptied = replace(scope, roster=replace(scope.roster, instances={}))
    (roster,) = declared_rosters(ScaleSet(name="s", capacity=2), [emptied]).values()
    assert [*roster.instances] == ["s_0", "s_1"]
    assert roster.next_number == 2
