"""The plan says which instances when, and is what then happens if nobody interferes."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.commands import Schedule
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later
from fairwarning.core.model import EventType, Policy, ScopeId
from fairwarning.core.rollouts.model import (
    RolloutPhase,
    RolloutSpec,
    RolloutStep,
    StepPhase,
)
from fairwarning.core.rollouts.plan import checked_steps, estimate, preview
from fairwarning.core.rollouts.windows import parse_window
from tests.core.builders import E1, names
from tests.core.rollouts.test_advance import BEFORE_DST, MONDAY, fleets, make_world, specs
from tests.core.rollouts.test_windows import at
from tests.core.rollouts.world import World, availability_set


def times(steps: tuple[RolloutStep, ...]) -> list[tuple[object, ...]]:
    return [
        (s.scope_id, s.update_domain, s.instances, s.announced_ms, s.not_before_ms, s.ended_ms)
        for s in steps
    ]


@given(specs, fleets, st.sampled_from([MONDAY, BEFORE_DST]))
def test_the_plan_is_what_happens(
    spec: RolloutSpec, fleet: list[tuple[int, int]], now: Instant
) -> None:
    world = make_world(spec, fleet, now)
    plan = preview(spec, world.scopes.values(), now)
    world.run_to_end()
    assert times(world.rollout.steps) == times(plan.steps)
    assert world.rollout.ended_ms == plan.ends_ms
    assert world.rollout.phase is RolloutPhase.COMPLETED


@given(specs, fleets, st.integers(0, 5 * HOUR_MS))
def test_in_the_middle_the_estimates_are_still_right(
    spec: RolloutSpec, fleet: list[tuple[int, int]], later_by: int
) -> None:
    world = make_world(spec, fleet, MONDAY)
    plan = preview(spec, world.scopes.values(), world.now)
    world.run_until(later(world.now, later_by))
    if world.rollout.ended_ms is None:
        shown = estimate(world.rollout, world.scopes, world.now)
        assert times(shown.steps) == times(plan.steps)


def test_scopes_run_side_by_side_and_domains_one_after_the_other() -> None:
    scopes = [availability_set(name, 2, 2) for name in ("a", "b", "c")]
    spec = RolloutSpec(
        type=EventType.REBOOT, duration_s=60, scopes_at_once=2, pause_ms=10 * MINUTE_MS
    )
    plan = preview(spec, scopes, MONDAY)
    told = [
        (step.scope_id.rpartition("/")[2], step.update_domain, _minutes(step.announced_ms))
        for step in plan.steps
    ]
    assert told == [
        ("a", 0, 0),
        ("a", 1, 26),
        ("b", 0, 0),
        ("b", 1, 26),
        ("c", 0, 52),
        ("c", 1, 78),
    ]


def test_a_scope_without_instances_makes_no_rule_for_the_others() -> None:
    rehearsed, empty = availability_set("a", 1, 1, test=True), availability_set("b", 0, 1)
    spec = RolloutSpec(type=EventType.REBOOT, notice_ms=MINUTE_MS)
    steps = checked_steps(spec, (rehearsed, empty), MONDAY)
    assert [step.scope_id for step in steps] == [rehearsed.id]


def _minutes(instant: Instant | None) -> int | None:
    return None if instant is None else (instant - MONDAY) // MINUTE_MS


def test_an_announcement_waits_for_a_window_that_holds_all_of_it() -> None:
    """16 minutes and 40 seconds fit into a window of 17 only if it is announced at its begin."""
    spec = RolloutSpec(
        type=EventType.REBOOT, duration_s=90, windows=(parse_window("daily 10:00-10:17"),)
    )
    scopes = [availability_set("a", 1, 1)]
    for now, announced in (
        ("2026-11-16T09:00Z", "2026-11-16T10:00Z"),
        ("2026-11-16T10:00:18Z", "2026-11-16T10:00:18Z"),
        ("2026-11-16T10:00:20Z", "2026-11-17T10:00Z"),
    ):
        assert preview(spec, scopes, at(now)).steps[0].announced_ms == at(announced)


def test_a_scope_with_a_higher_minimum_gets_its_notice() -> None:
    policy = Policy(notice_ms={EventType.REBOOT: HOUR_MS})
    scopes = [availability_set("a", 1, 1, policy=policy), availability_set("b", 1, 1)]
    plan = preview(RolloutSpec(type=EventType.REBOOT, scopes_at_once=2), scopes, MONDAY)
    assert [_minutes(step.not_before_ms) for step in plan.steps] == [60, 15]


def test_only_a_test_fleet_gets_less_than_the_minimum_notice() -> None:
    spec = RolloutSpec(type=EventType.REBOOT, notice_ms=2 * MINUTE_MS)
    world = World(spec, [availability_set("a", 1, 1, test=True)], MONDAY)
    plan = preview(spec, world.scopes.values(), MONDAY)
    assert _minutes(plan.steps[0].not_before_ms) == 2
    world.run_to_end()
    assert times(world.rollout.steps) == times(plan.steps)


def test_an_event_that_is_pending_already_is_waited_for() -> None:
    world = World(RolloutSpec(type=EventType.REBOOT), [availability_set("a", 1, 1)], MONDAY)
    (scope_id,) = world.scopes
    own = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("a-0"), duration_s=60)
    world.do(scope_id, own)
    plan = preview(world.rollout.spec, world.scopes.values(), world.now)
    assert _minutes(plan.steps[0].announced_ms) == 16
    assert "other events are pending there" in " ".join(plan.warnings)
    world.run_to_end()
    assert times(world.rollout.steps) == times(plan.steps)


def test_the_plan_warns_of_what_an_operator_may_not_expect() -> None:
    scopes = [
        availability_set("empty", 0, 2),
        availability_set("one-domain", 3, 1),
        *(availability_set(f"more-{n}", 2, 2) for n in range(6)),
    ]
    warnings = preview(RolloutSpec(type=EventType.REDEPLOY), scopes, MONDAY).warnings
    place = "00000000-0000-0000-0000-000000000000/default/availability-set"
    assert f"{place}/empty: there is no instance, so nothing will happen" in warnings
    assert f"{place}/one-domain: all instances are in one update domain" in " ".join(warnings)
    assert "no instance has ever asked for its events" in " ".join(warnings)
    assert f"{place}/more-3 and 2 more" in " ".join(warnings)
    assert "nobody says how long a Redeploy takes, so the plan assumes 1 min" in " ".join(warnings)


def test_a_plan_for_a_scope_that_is_heard_and_a_known_duration_has_no_warnings() -> None:
    world = World(
        RolloutSpec(type=EventType.REBOOT, duration_s=60), [availability_set("a", 4, 2)], MONDAY
    )
    assert preview(world.rollout.spec, world.scopes.values(), MONDAY).warnings == ()


def test_nobody_knows_the_times_of_a_rollout_that_is_paused() -> None:
    world = World(RolloutSpec(type=EventType.FREEZE), [availability_set("a", 2, 2)], MONDAY)
    world.settle()
    paused = replace(world.rollout, phase=RolloutPhase.PAUSED)
    assert estimate(paused, world.scopes, world.now) == paused


def test_a_plan_reaches_through_ten_thousand_scopes() -> None:
    """The work grows with the fleet and not with its square, or this would not end."""
    scope = availability_set("a", 2, 2)
    scopes = [replace(scope, id=ScopeId(f"scope-{n}")) for n in range(10_000)]
    spec = RolloutSpec(
        type=EventType.FREEZE, scopes_at_once=100, windows=(parse_window("daily 22:00-04:00"),)
    )
    plan = preview(spec, scopes, MONDAY)
    assert len(plan.steps) == 20_000
    assert plan.ends_ms is not None
    assert all(step.phase is StepPhase.WAITING for step in plan.steps)
    assert plan.steps[0].not_before_ms == at("2026-11-16T22:15Z")
    assert plan.ends_ms > MONDAY + 100 * 15 * MINUTE_MS + 5 * SECOND_MS


def test_an_impact_that_takes_longer_than_it_said_is_not_expected_in_the_past() -> None:
    world = World(
        RolloutSpec(type=EventType.REBOOT, duration_s=60), [availability_set("a", 2, 2)], MONDAY
    )
    world.settle()
    late = later(MONDAY, HOUR_MS)
    first, second = estimate(world.rollout, world.scopes, late).steps
    assert first.ended_ms == late
    assert second.announced_ms is not None
    assert second.announced_ms >= late
