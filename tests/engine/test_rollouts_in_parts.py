"""Large rollouts, which are stored in parts, do the same as small ones."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from fairwarning.boot import make_store
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS
from fairwarning.core.model import EventType
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts import parts
from fairwarning.core.rollouts.advance import Advance
from fairwarning.core.rollouts.model import Rollout, RolloutPhase, RolloutSpec, StepPhase
from fairwarning.engine import rollout_runner
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store
from fairwarning.engine.rollout_records import KIND, LARGE_KIND, PART_KIND
from fairwarning.engine.rollouts import Rollouts
from fairwarning.stores.memory import MemoryStore
from tests.core.rollouts.test_advance import MONDAY, fleets, specs
from tests.core.rollouts.test_plan import times
from tests.engine.harness import ME
from tests.engine.rolling import REBOOT, Node, OvertakenStore, alone, web

SPEC = RolloutSpec(type=EventType.REBOOT, duration_s=60, scopes_at_once=2)


@pytest.fixture(autouse=True)
def in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the rollouts of these tests are large, and their parts have about three steps."""
    monkeypatch.setattr(parts, "WHOLE_STEPS_MAX", 0)
    monkeypatch.setattr(parts, "PART_STEPS_MAX", 3)


async def all_steps(rollouts: Rollouts, id: str, limit: int = 2) -> list[tuple[str, str]]:
    """All steps, read in pages."""
    found: list[tuple[str, str]] = []
    after: str | None = ""
    while after is not None:
        page, after = await rollouts.steps(id, after, limit)
        assert len(page) == limit or after is None
        found += [(step.scope_id.rpartition("/")[2], str(step.phase)) for step in page]
    return found


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(specs, fleets)
async def test_it_happens_when_the_plan_says(
    spec: RolloutSpec, fleet: list[tuple[int, int]]
) -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(*(web(f"s{n}", *size) for n, size in enumerate(fleet)))
    try:
        parts.WHOLE_STEPS_MAX = 1_000
        plan = await node.rollouts.preview(spec)
        parts.WHOLE_STEPS_MAX = 0
        rollout = await node.rollouts.create(spec, by=ME)
    except Refused:
        await node.stop()
        return
    assert rollout.rest is not None
    assert plan.ends_ms is not None
    await clock.advance(plan.ends_ms - clock.now() + HOUR_MS)
    done = await node.rollouts.get(rollout.id)
    assert (done.phase, done.ended_ms) == (RolloutPhase.COMPLETED, plan.ends_ms)
    assert done.counts == {StepPhase.COMPLETED: len(plan.steps)}
    assert done.outcome == f"update domains: {len(plan.steps)} completed"
    steps, _ = await node.rollouts.steps(rollout.id, "", 1_000)
    assert times(tuple(steps)) == times(plan.steps)
    await node.stop()


async def test_the_record_has_no_steps_and_an_older_version_does_not_see_it() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(*(web(f"s{n}") for n in range(6)))
    rollout = await node.rollouts.create(SPEC, by=ME)
    (record,) = await node.store.records(LARGE_KIND, limit=10)
    assert '"steps":[]' in record.body
    assert not await node.store.records(KIND, limit=10)
    assert len(await node.store.records(PART_KIND, limit=10)) == 3
    (listed,) = await node.rollouts.page()
    assert (listed.id, listed.steps) == (rollout.id, ())
    assert listed.counts == {StepPhase.WAITING: 12}
    await node.stop()


async def test_only_parts_under_way_are_open_and_pages_show_all() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(*(web(f"s{n}") for n in range(6)))
    rollout = await node.rollouts.create(SPEC, by=ME)
    await clock.advance(20 * MINUTE_MS)
    now = await node.rollouts.get(rollout.id)
    assert now.rest is not None
    assert now.rest.opened == (0,)
    assert now.counts[StepPhase.WAITING] == 8
    steps = await all_steps(node.rollouts, rollout.id)
    assert [name for name, _ in steps] == [f"s{n // 2}" for n in range(12)]
    await clock.advance(20 * MINUTE_MS)
    later = await node.rollouts.get(rollout.id)
    assert later.rest is not None
    assert (later.rest.opened, later.rest.closed) == ((1,), {StepPhase.COMPLETED: 4})
    await clock.advance(DAY_MS)
    assert set(await all_steps(node.rollouts, rollout.id)) == {
        (f"s{n}", "completed") for n in range(6)
    }
    await node.stop()


async def test_a_cancelled_rollout_skips_what_it_never_came_to() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(*(web(f"s{n}") for n in range(6)))
    rollout = await node.rollouts.create(SPEC, by=ME)
    await clock.advance(MINUTE_MS)
    await node.rollouts.cancel(rollout.id, by=ME, why="no")
    await clock.advance(HOUR_MS)
    over = await node.rollouts.get(rollout.id)
    assert over.phase is RolloutPhase.CANCELLED
    assert over.ended_ms is not None
    assert over.counts == {StepPhase.CANCELLED: 2, StepPhase.SKIPPED: 10}
    phases = [phase for _, phase in await all_steps(node.rollouts, rollout.id)]
    assert sorted(phases) == ["cancelled"] * 2 + ["skipped"] * 10
    await node.stop()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_another_node_goes_on_where_one_died(kind: str, tmp_path: Path) -> None:
    clock = VirtualClock(MONDAY)
    store: Store = MemoryStore(clock)
    if kind == "sqlite":
        store = make_store(f"sqlite:///{tmp_path}/a.db", clock)
    await store.open()
    node = await Node(store, clock).start()
    await node.declare(*(web(f"s{n}") for n in range(6)))
    rollout = await node.rollouts.create(SPEC, by=ME)
    await clock.advance(40 * MINUTE_MS)
    await node.kill()
    other = await Node(store, clock).start()
    await clock.advance(DAY_MS)
    done = await other.rollouts.get(rollout.id)
    assert (done.phase, done.counts) == (RolloutPhase.COMPLETED, {StepPhase.COMPLETED: 12})
    assert len(await other.announced()) == 12
    await other.stop()
    await store.close()


async def test_a_change_by_another_node_is_read_again() -> None:
    clock = VirtualClock(MONDAY)
    store = OvertakenStore(clock)
    node = await Node(store, clock).start()
    await node.declare(*(web(f"s{n}") for n in range(3)))
    rollout = await node.rollouts.create(SPEC, by=ME)
    other = Rollouts(node.engine, store, clock)

    async def pause() -> Rollout:
        return await other.pause(rollout.id, by=ME)

    store.meddle = pause
    await clock.advance(DAY_MS)
    now = await node.rollouts.get(rollout.id)
    assert now.phase is RolloutPhase.PAUSED
    await node.rollouts.resume(rollout.id, by=ME)
    await clock.advance(DAY_MS)
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.COMPLETED
    await node.stop()


async def test_many_scopes_at_once_are_decided_about_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollout_runner, "QUICK_STEPS_MAX", 0)
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(*(web(f"s{n}") for n in range(3)))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.advance(DAY_MS)
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.COMPLETED
    await node.stop()


async def test_the_changes_of_a_crowd_are_gathered_for_one_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollout_runner, "CROWD_SCOPES", 2)
    looks: list[int] = []
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(*(web(f"s{n}", 1, 1, test=True) for n in range(20)))
    real = rollout_runner._advance

    async def counted(*given: Any) -> Advance:
        looks.append(clock.now())
        return await real(*given)

    monkeypatch.setattr(rollout_runner, "_advance", counted)
    spec = RolloutSpec(type=EventType.FREEZE, notice_ms=0, duration_s=0, scopes_at_once=20)
    rollout = await node.rollouts.create(spec, by=ME)
    await clock.advance(MINUTE_MS)
    done = await node.rollouts.get(rollout.id)
    assert (done.phase, done.counts) == (RolloutPhase.COMPLETED, {StepPhase.COMPLETED: 20})
    assert len(looks) < 20
    await node.stop()


async def test_a_wrong_cursor_is_refused() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"))
    rollout = await node.rollouts.create(SPEC, by=ME)
    with pytest.raises(Refused) as refused:
        await node.rollouts.steps(rollout.id, "x", 10)
    assert refused.value.code is Code.ROLLOUT_INVALID
    assert await node.rollouts.steps(rollout.id, "9.0", 10) == ([], None)
    await node.stop()
