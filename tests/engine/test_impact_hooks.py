"""Hooks run at least once around an impact that happens once, whichever node dies when."""

import asyncio
import dataclasses

from fairwarning.core.commands import Release, ReportDone, Tick
from fairwarning.core.hooks import Hook, Hooks, OnFailure
from fairwarning.core.instants import MINUTE_MS, SECOND_MS
from fairwarning.core.limits import Timing
from fairwarning.core.model import NodeId, Phase, Scope
from fairwarning.core.transitions import HookFinished
from fairwarning.engine.protocols import Found, HookCall, HookResult, Order
from fairwarning.engine.service import Engine, Rules
from tests.core.builders import E1
from tests.engine.harness import ME, TEST_WEB, kill
from tests.engine.late_rig import LEASE_MS, LateRig, RecordingDriver, approve, run_all
from tests.support.patience import HANG_S

OFF, FLUSH = Hook(run=("off",), on_failure=OnFailure.GO_ON), Hook(run=("flush",))
ON = Hook(run=("on",))
HOOKS = Hooks(before=(OFF, FLUSH), after=(ON,))
ALL = ["before 1, attempt 1", "before 2, attempt 1", "after 1, attempt 1"]


class RecordingHooks:
    """Notes every call. A hook lasts until the test ends it, or no time at all."""

    def __init__(self, driver: RecordingDriver) -> None:
        self._driver = driver
        self.beside: list[int] = []
        """How many calls of the driver were running at each call."""
        self.told: list[str] = []
        self.calls: list[HookCall] = []
        self.failing: dict[str, int] = {}
        """How many more calls of a program fail."""
        self.held = ""
        """The program that lasts until the test lets it go."""
        self.gate = asyncio.Event()

    async def __call__(self, order: Order, call: HookCall) -> HookResult:
        self.told.append(f"{call.stage} {call.number}, attempt {order.attempt}")
        self.calls.append(call)
        self.beside.append(self._driver.running)
        name = call.hook.label
        if name == self.held:
            await self.gate.wait()
        if name == "broken":
            raise KeyError
        if self.failing.get(name, 0):
            self.failing[name] -= 1
            return HookResult(is_done=False, result="exit code 1", output="no\x1b route\0")
        return HookResult(is_done=True, result="exit code 0")


class HookRig(LateRig):
    def __init__(self, hooks: Hooks = HOOKS) -> None:
        super().__init__()
        self.hooks = RecordingHooks(self.calls)
        self.run_hook = self.hooks
        place = dataclasses.replace(TEST_WEB.place, hooks=hooks)
        self.resource = dataclasses.replace(TEST_WEB, place=place)

    async def begin(self, rules: Rules | None = None) -> tuple[Engine, Scope]:
        engine = await self.node(rules=rules)
        scope = await self.scheduled(engine, E1)
        await approve(engine, scope, E1)
        await run_all()
        return engine, scope

    async def finished(self) -> list[HookFinished]:
        entries = [each.transition for each in await self.entries()]
        return [each for each in entries if isinstance(each, HookFinished)]

    async def let_another_node_finish(self) -> None:
        """Another node takes over when the lease has run out."""
        self.hooks.held = ""
        second = await self.node("second")
        await self.clock.advance(LEASE_MS + MINUTE_MS)
        await second.stop()


async def test_hooks_run_around_the_impact_in_their_order() -> None:
    rig = HookRig()
    engine, scope = await rig.begin()
    assert rig.hooks.told == ALL
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    kinds = [each for each in await rig.history() if "Document" not in each]
    assert kinds[kinds.index("HandedOver") :] == [
        "HandedOver", "HookFinished", "HookFinished", "ImpactEnded", "HookFinished", "Completed"
    ]  # fmt: skip
    assert [each.outcome for each in rig.hooks.calls] == [None, None, Phase.COMPLETED]
    await engine.stop()


async def test_the_driver_is_not_called_after_a_hook_that_must_not_fail() -> None:
    rig = HookRig()
    rig.hooks.failing["flush"] = 1
    engine, scope = await rig.begin()
    assert rig.hooks.told == ALL
    assert rig.calls.begun == rig.calls.asked == []
    assert await rig.phase(scope.id, E1) is Phase.FAILED
    last = rig.hooks.calls[-1]
    assert last.outcome is Phase.FAILED
    assert last.reason == "hook before 2 (flush) failed: exit code 1"
    await engine.stop()


async def test_a_hook_that_may_fail_and_one_after_the_impact_change_nothing() -> None:
    rig = HookRig()
    rig.hooks.failing = {"off": 1, "on": 1}
    engine, scope = await rig.begin()
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    assert [each.is_done for each in await rig.finished()] == [False, True, False]
    await engine.stop()


async def test_the_output_is_stored_without_control_characters() -> None:
    rig = HookRig()
    rig.hooks.failing["off"] = 1
    engine, _ = await rig.begin()
    assert (await rig.finished())[0].output == "no\N{REPLACEMENT CHARACTER} route\ufffd"
    await engine.stop()


async def test_a_hook_that_breaks_is_a_failure() -> None:
    rig = HookRig(Hooks(before=(Hook(run=("broken",)),)))
    engine, scope = await rig.begin()
    assert await rig.phase(scope.id, E1) is Phase.FAILED
    assert [each.result for each in await rig.finished()] == ["KeyError"]
    await engine.stop()


async def test_the_lease_is_renewed_while_a_hook_pauses_between_its_tries() -> None:
    pause_ms = 5 * LEASE_MS
    rig = HookRig(Hooks(before=(Hook(run=("off",), retries=2, pause_ms=pause_ms),), after=(ON,)))
    rig.hooks.failing["off"] = 2
    engine, scope = await rig.begin()
    other = await rig.node("other")
    await rig.clock.advance(pause_ms - 1)
    assert [each.tried for each in rig.hooks.calls] == [1]
    await rig.clock.advance(pause_ms + 1)
    assert [each.tried for each in rig.hooks.calls] == [1, 2, 3, 1]
    finished, _ = await rig.finished()
    assert (finished.tries, finished.is_done, finished.took_ms) == (3, True, 2 * pause_ms)
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()
    await other.stop()


async def test_a_node_that_dies_in_a_hook_leaves_it_to_the_next_one() -> None:
    rig = HookRig()
    rig.hooks.held = "flush"
    engine, scope = await rig.begin()
    kill(engine)
    await rig.let_another_node_finish()
    assert rig.hooks.told == [*ALL[:2], "before 2, attempt 2", "after 1, attempt 2"]
    assert rig.calls.begun == [(E1, 2)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED


async def test_a_node_that_dies_between_the_hooks_and_the_driver_loses_no_impact() -> None:
    """The last result is stored, and the node dies before it hears of that."""
    rig = HookRig()
    rig.hooks.held = "flush"
    engine, scope = await rig.begin()
    rig.late_store.is_late = True
    rig.hooks.gate.set()
    await run_all()
    assert rig.calls.begun == []
    kill(engine)
    rig.late_store.is_late = False
    await rig.let_another_node_finish()
    assert rig.hooks.told == [*ALL[:2], "after 1, attempt 2"]
    assert rig.calls.asked == [(E1, 2)]
    assert rig.calls.begun == [(E1, 2)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED


async def test_a_node_that_dies_in_the_driver_leaves_only_the_hooks_after_it() -> None:
    rig = HookRig()
    rig.calls.lasts = True
    engine, scope = await rig.begin()
    kill(engine)
    rig.calls.lasts, rig.calls.found = False, Found.DONE
    await rig.let_another_node_finish()
    assert rig.hooks.told == [*ALL[:2], "after 1, attempt 2"]
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED


async def test_a_node_that_dies_in_a_hook_after_the_impact_repeats_only_the_hook() -> None:
    rig = HookRig()
    rig.hooks.held = "on"
    engine, scope = await rig.begin()
    kill(engine)
    await rig.let_another_node_finish()
    assert rig.hooks.told == [*ALL, "after 1, attempt 2"]
    assert rig.calls.begun == [(E1, 1)]
    assert rig.calls.asked == []
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED


async def test_a_node_that_loses_the_work_in_a_hook_does_not_call_the_driver() -> None:
    rig = HookRig()
    rig.hooks.held = "flush"
    engine, scope = await rig.begin()
    rig.hooks.held = ""
    second = await rig.node("second")
    release = Release(event_id=E1, attempt=1, node=NodeId("n1"))
    rig.calls.lasts = True
    await second.submit(scope.id, release, by=ME)
    await run_all()
    assert rig.calls.begun == [(E1, 2)]
    rig.hooks.gate.set()
    await run_all()
    assert rig.calls.begun == [(E1, 2)]
    assert [each.attempt for each in await rig.finished()] == [1, 2]
    rig.calls.end_all()
    await run_all()
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()
    await second.stop()


async def test_a_result_waits_for_a_store_that_is_away_or_loses_its_answer() -> None:
    rig = HookRig()
    rig.hooks.held = "flush"
    engine, scope = await rig.begin()
    rig.late_store.is_down = True
    rig.hooks.gate.set()
    await rig.clock.advance(2 * SECOND_MS)
    rig.late_store.is_down = False
    rig.late_store.is_late = True
    passing = asyncio.create_task(rig.clock.advance(2 * SECOND_MS))
    await run_all()
    rig.late_store.is_late = False
    rig.late_store.lose(0)
    await passing
    assert rig.hooks.told == ALL
    assert len(await rig.finished()) == 3
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_a_result_that_waited_until_the_next_attempt_counts_in_that_one() -> None:
    """The lease ran out while the store was away, and the same node got the work again."""
    rig = HookRig()
    rig.hooks.held = "flush"
    engine, scope = await rig.begin()
    rig.late_store.is_down = True
    rig.hooks.gate.set()
    await rig.clock.advance(2 * LEASE_MS)
    rig.late_store.is_down = False
    await engine.submit(scope.id, Tick(), by=ME)
    async with asyncio.timeout(HANG_S):
        await rig.clock.advance(2 * SECOND_MS)
    finished = [(each.attempt, each.number) for each in await rig.finished()]
    assert finished == [(1, 1), (2, 2), (2, 1)]
    assert rig.hooks.told[:2] == ALL[:2]
    assert len(rig.hooks.told) == 3
    assert len(rig.calls.begun) == 1
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_a_node_that_stops_gives_the_hook_back() -> None:
    rig = HookRig()
    rig.hooks.held = "on"
    engine, scope = await rig.begin()
    await engine.stop()
    await rig.assert_given_back(scope.id, E1)
    await rig.let_another_node_finish()
    assert rig.hooks.told == [*ALL, "after 1, attempt 2"]


async def test_an_impact_begins_when_its_hooks_have_ended() -> None:
    rig = HookRig(Hooks(before=(Hook(run=("off",), retries=1),)))
    rig.hooks.failing["off"] = 1
    engine, scope = await rig.begin()
    await rig.clock.advance(MINUTE_MS)
    started_ms = (await rig.store.read(scope.id)).events[E1].started_ms
    assert started_ms is not None
    assert [each.started_ms - started_ms for each in rig.calls.orders] == [5 * SECOND_MS]
    await engine.stop()


async def test_a_driver_that_hangs_for_good_is_ended_before_the_hooks_after_it() -> None:
    rig = HookRig()
    rig.calls.lasts = True
    timing = Timing(attempt_ms=MINUTE_MS, attempts_max=1)
    engine, scope = await rig.begin(Rules(timing=timing))
    assert rig.calls.running == 1
    await rig.clock.advance(MINUTE_MS + HOOKS.longest_ms)
    await run_all()
    assert rig.hooks.told == [*ALL[:2], "after 1, attempt 2"]
    assert rig.hooks.beside == [0, 0, 0]
    assert await rig.phase(scope.id, E1) is Phase.FAILED
    await engine.stop()


async def test_a_late_report_of_another_node_leaves_the_hooks_to_the_one_with_the_work() -> None:
    rig = HookRig()
    rig.calls.lasts = True
    engine, scope = await rig.begin()
    await engine.submit(scope.id, ReportDone(event_id=E1), by=ME)
    assert rig.hooks.told == ALL[:2]
    rig.calls.end_all()
    await run_all()
    assert rig.hooks.told == ALL
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_no_hook_runs_before_an_impact_that_the_store_has_forgotten() -> None:
    rig = HookRig()
    rig.calls.lasts = True
    engine = await rig.node()
    scope = await rig.scheduled(engine, E1)
    before = rig.late_store.snapshot()
    await approve(engine, scope, E1)
    await run_all()
    assert rig.calls.begun == [(E1, 1)]
    rig.late_store.put_back(before)
    engine._on_step_back()
    await run_all()
    rig.calls.end_all()
    await run_all()
    rig.calls.found = Found.DONE
    await approve(engine, scope, E1)
    await run_all()
    assert rig.hooks.told[2:] == ["after 1, attempt 1"]
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()
