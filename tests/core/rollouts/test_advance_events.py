"""What a rollout does when something happens to it, one story each."""

import uuid

from msgspec.structs import replace

from fairwarning.core.commands import Approve, Cancel, Declare, Postpone, Schedule
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, later
from fairwarning.core.model import EventType, Phase, operator_actor
from fairwarning.core.rollouts.model import (
    RolloutPhase,
    RolloutSpec,
    event_id_of,
    is_rollout_id,
    rollout_id,
)
from fairwarning.core.rollouts.windows import parse_window
from tests.core.builders import E1, E2, names
from tests.core.rollouts.test_advance import MONDAY
from tests.core.rollouts.test_windows import at
from tests.core.rollouts.world import World, availability_set

REBOOT = RolloutSpec(type=EventType.REBOOT, duration_s=60)


def world(spec: RolloutSpec = REBOOT, *sizes: tuple[int, int]) -> World:
    scopes = [availability_set(f"s{n}", *size) for n, size in enumerate(sizes or ((4, 2),))]
    made = World(spec, scopes, MONDAY)
    made.settle()
    return made


def phases(made: World) -> list[str]:
    return [str(step.phase) for step in made.rollout.steps]


def test_the_next_domain_is_announced_when_the_one_before_has_ended_and_the_pause_is_over() -> None:
    made = world(replace(REBOOT, pause_ms=10 * MINUTE_MS))
    assert phases(made) == ["announced", "waiting"]
    made.run_until(later(MONDAY, 15 * MINUTE_MS))
    assert phases(made) == ["started", "waiting"]
    made.run_until(later(MONDAY, 26 * MINUTE_MS - 1))
    assert phases(made) == ["completed", "waiting"]
    made.run_until(later(MONDAY, 26 * MINUTE_MS))
    assert phases(made) == ["completed", "announced"]


def test_an_approval_starts_it_early_and_the_rollout_goes_on_sooner() -> None:
    made = world()
    (scope_id,) = made.scopes
    event_id = made.rollout.steps[0].event_id
    assert event_id is not None
    made.do(scope_id, Approve(event_id=event_id, by=operator_actor("me")))
    made.run_until(later(MONDAY, MINUTE_MS))
    assert phases(made) == ["completed", "announced"]


def test_a_failure_stops_it_and_takes_back_what_is_announced_elsewhere() -> None:
    made = world(replace(REBOOT, scopes_at_once=2), (2, 2), (2, 2))
    first = made.rollout.steps[0].event_id
    assert first is not None
    made.failing = True
    made.do(made.rollout.steps[0].scope_id, Approve(event_id=first, by=operator_actor("me")))
    made.run_until(later(MONDAY, HOUR_MS))
    assert phases(made) == ["failed", "skipped", "cancelled", "skipped"]
    assert made.rollout.phase is RolloutPhase.FAILED
    assert made.rollout.outcome.endswith("s0 failed: gave up after attempt 1: it burns")
    assert made.rollout.ended_ms == MONDAY + MINUTE_MS


def test_without_stop_on_failure_it_goes_on_and_says_so_in_the_end() -> None:
    made = world(replace(REBOOT, stop_on_failure=False))
    made.failing = True
    made.run_to_end()
    assert made.rollout.phase is RolloutPhase.COMPLETED
    assert made.rollout.outcome == "update domains: 2 failed"


def test_an_event_that_somebody_else_cancels_counts_as_a_failure() -> None:
    made = world()
    (scope_id,) = made.scopes
    first = made.rollout.steps[0].event_id
    assert first is not None
    made.do(scope_id, Cancel(event_id=first, reason="not today"))
    made.settle()
    assert made.rollout.phase is RolloutPhase.FAILED
    assert made.rollout.outcome.endswith("was cancelled: not today")


def test_a_pause_lets_go_on_what_is_announced_and_announces_nothing() -> None:
    made = world()
    made.change(replace(made.rollout, phase=RolloutPhase.PAUSED))
    made.run_until(later(MONDAY, DAY_MS))
    assert phases(made) == ["completed", "waiting"]
    made.change(replace(made.rollout, phase=RolloutPhase.RUNNING))
    made.settle()
    assert phases(made) == ["completed", "announced"]


def test_a_cancel_takes_back_what_is_announced_and_lets_what_started_end() -> None:
    made = world(replace(REBOOT, scopes_at_once=2), (2, 2), (2, 2))
    first = made.rollout.steps[0].event_id
    assert first is not None
    made.do(made.rollout.steps[0].scope_id, Approve(event_id=first, by=operator_actor("me")))
    made.settle()
    made.change(replace(made.rollout, phase=RolloutPhase.CANCELLED, outcome="no more"))
    made.settle()
    assert phases(made) == ["started", "skipped", "cancelled", "skipped"]
    assert made.rollout.ended_ms is None
    made.run_to_end()
    assert phases(made) == ["completed", "skipped", "cancelled", "skipped"]
    assert (made.rollout.phase, made.rollout.outcome) == (RolloutPhase.CANCELLED, "no more")


def test_instances_that_are_gone_drop_out_and_an_empty_domain_is_skipped() -> None:
    made = world()
    (scope_id,) = made.scopes
    roster = made.scopes[scope_id].roster
    kept = {n: each for n, each in roster.instances.items() if n in names("s0-0", "s0-2")}
    made.do(scope_id, Declare(roster=replace(roster, instances=kept), force=True))
    made.run_to_end()
    assert phases(made) == ["completed", "skipped"]
    assert made.rollout.phase is RolloutPhase.COMPLETED


def test_an_instance_that_is_moved_to_another_domain_drops_out_of_its_step() -> None:
    made = world()
    (scope_id,) = made.scopes
    roster = made.scopes[scope_id].roster
    moved = replace(roster.instances[names("s0-3")[0]], update_domain=0)
    instances = {**roster.instances, moved.name: moved}
    made.do(scope_id, Declare(roster=replace(roster, instances=instances)))
    made.run_to_end()
    assert phases(made) == ["completed", "completed"]
    assert made.rollout.steps[1].instances == names("s0-1")


def test_a_domain_whose_instances_all_go_while_it_is_announced_is_skipped() -> None:
    made = world()
    (scope_id,) = made.scopes
    roster = made.scopes[scope_id].roster
    kept = {n: each for n, each in roster.instances.items() if n in names("s0-1")}
    made.do(scope_id, Declare(roster=replace(roster, instances=kept), force=True))
    made.run_to_end()
    assert phases(made) == ["skipped", "completed"]
    assert made.rollout.steps[1].instances == names("s0-1")


def test_a_scope_that_is_removed_from_the_fleet_is_skipped() -> None:
    made = world(REBOOT, (2, 2), (1, 1))
    gone = made.rollout.steps[0].scope_id
    del made.scopes[gone]
    made.events.clear()
    made.run_to_end()
    assert phases(made) == ["skipped", "skipped", "completed"]


def test_a_postponed_event_is_followed_to_its_new_time() -> None:
    made = world()
    (scope_id,) = made.scopes
    first = made.rollout.steps[0].event_id
    assert first is not None
    start = later(MONDAY, 5 * HOUR_MS)
    made.postponed.add(E1)
    made.do(scope_id, Postpone(event_id=first, new_event_id=E1, not_before_ms=start))
    made.settle()
    assert made.rollout.steps[0].not_before_ms == start
    made.run_to_end()
    assert phases(made) == ["completed", "completed"]


def test_an_event_that_an_operator_postponed_may_reach_beyond_its_window() -> None:
    window = parse_window("daily 09:00-11:00")
    made = world(replace(REBOOT, duration_s=1_800, windows=(window,)))
    (scope_id,) = made.scopes
    first = made.rollout.steps[0].event_id
    assert first is not None
    start = later(MONDAY, 80 * MINUTE_MS)
    made.postponed.add(E1)
    made.do(scope_id, Postpone(event_id=first, new_event_id=E1, not_before_ms=start))
    made.run_until(start)
    assert made.events[E1].phase is Phase.STARTED


def test_what_is_kept_from_starting_until_its_window_closes_is_announced_in_the_next() -> None:
    made = world(replace(REBOOT, windows=(parse_window("daily 09:00-10:00"),)))
    (scope_id,) = made.scopes
    first = made.rollout.steps[0].event_id
    failure = Schedule(
        event_id=E2,
        type=EventType.REDEPLOY,
        targets=names("s0-1"),
        duration_s=2 * 3600,
        already_happened=True,
    )
    made.do(scope_id, failure)
    made.run_until(at("2026-11-16T09:58:54Z"))
    assert made.scopes[scope_id].events[first or E1].phase is Phase.SCHEDULED
    made.run_until(at("2026-11-16T09:58:55Z"))
    assert made.scopes[scope_id].events[first or E1].phase is Phase.CANCELLED
    assert phases(made) == ["waiting", "waiting"]
    made.run_until(at("2026-11-17T09:00Z"))
    assert phases(made) == ["announced", "waiting"]
    assert made.rollout.steps[0].event_id != first
    made.run_to_end()
    assert phases(made) == ["completed", "completed"]


def test_a_pause_keeps_the_window_too_for_what_is_announced_already() -> None:
    made = world(replace(REBOOT, windows=(parse_window("daily 09:00-10:00"),)))
    (scope_id,) = made.scopes
    first = made.rollout.steps[0].event_id
    assert first is not None
    failure = Schedule(
        event_id=E2,
        type=EventType.REDEPLOY,
        targets=names("s0-1"),
        duration_s=2 * 3600,
        already_happened=True,
    )
    made.do(scope_id, failure)
    made.change(replace(made.rollout, phase=RolloutPhase.PAUSED))
    made.run_until(at("2026-11-16T12:00Z"))
    assert made.events[first].phase is Phase.CANCELLED
    assert phases(made) == ["waiting", "waiting"]


def test_a_crash_between_the_note_and_the_announcement_does_no_harm() -> None:
    made = World(REBOOT, [availability_set("s0", 4, 2)], MONDAY)
    made.settle(crash=True)
    assert phases(made) == ["announced", "waiting"]
    (scope_id,) = made.scopes
    assert not made.scopes[scope_id].events
    made.now = later(MONDAY, 5 * MINUTE_MS)
    made.settle()
    (event,) = made.scopes[scope_id].events.values()
    assert made.rollout.steps[0].event_id == event.id
    assert made.rollout.steps[0].not_before_ms == MONDAY + 20 * MINUTE_MS


def test_a_cancel_waits_for_an_announcement_that_a_stalled_node_may_still_make() -> None:
    made = World(REBOOT, [availability_set("s0", 4, 2)], MONDAY)
    (order,) = made.ask().announce
    made.settle(crash=True)
    made.change(replace(made.rollout, phase=RolloutPhase.CANCELLED))
    made.settle()
    assert made.rollout.ended_ms is None
    made.do(order.scope_id, order.command)
    made.settle()
    assert phases(made) == ["cancelled", "skipped"]

    made = World(REBOOT, [availability_set("s0", 4, 2)], MONDAY)
    made.settle(crash=True)
    made.change(replace(made.rollout, phase=RolloutPhase.CANCELLED))
    made.settle()
    assert made.wake == later(MONDAY, 15 * MINUTE_MS + 1), "nothing else will wake it"
    made.run_to_end()
    assert phases(made) == ["skipped", "skipped"]
    assert not made.try_(order.scope_id, order.command), "too late by then"


def test_ids_are_guids_that_follow_from_the_place() -> None:
    made = world()
    step = made.rollout.steps[0]
    given = event_id_of(made.rollout.id, step)
    assert uuid.UUID(given).version == 5
    assert given == str(uuid.UUID(given)).upper()
    others = (replace(step, update_domain=7), replace(step, tries=1))
    assert len({given, *(event_id_of(made.rollout.id, each) for each in others)}) == 3
    assert is_rollout_id(rollout_id(MONDAY, E1))
    assert rollout_id(MONDAY, E1) == "20261116-093000-000001"
