"""Hypothesis against rollouts: everything that operators, instances and crashes can do to one."""

from typing import Any

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import replace

from fairwarning.core.commands import Approve, Cancel, Declare, Operate, Postpone, Schedule
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later
from fairwarning.core.model import (
    Event,
    EventId,
    EventType,
    OperationKind,
    Phase,
    ScopeId,
    operator_actor,
)
from fairwarning.core.refusals import Refused
from fairwarning.core.rollouts.model import RolloutPhase, RolloutSpec, StepPhase
from fairwarning.core.rollouts.windows import parse_blackout, parse_window
from tests.core.builders import event_id
from tests.core.rollouts.test_windows import at
from tests.core.rollouts.world import World, availability_set

MONDAY = at("2026-11-16T09:30Z")
BEFORE_DST = at("2026-10-24T12:00Z")
CALENDARS: tuple[dict[str, Any], ...] = (
    {},
    {"windows": (parse_window("mon-fri 22:00-04:00"),), "time_zone": "Europe/Berlin"},
    {"windows": (parse_window("daily 10:00-10:20"), parse_window("daily 10:18-10:40"))},
    {"windows": (parse_window("daily 09:40-09:57"), parse_window("daily 20:00-20:18"))},
    {"windows": (parse_window("daily 01:00-02:30"),), "time_zone": "Europe/Berlin",
     "blackouts": (parse_blackout("2026-10-26/2026-10-27"),)},
    {"blackouts": (parse_blackout("2026-11-16"), parse_blackout("2026-11-18"))},
)  # fmt: skip
specs = st.builds(
    lambda calendar, **rest: RolloutSpec(**calendar, **rest),
    calendar=st.sampled_from(CALENDARS),
    type=st.sampled_from([EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY]),
    scopes_at_once=st.integers(1, 4),
    pause_ms=st.sampled_from([0, 1, 10 * MINUTE_MS, DAY_MS]),
    notice_ms=st.sampled_from([None, 15 * MINUTE_MS, 16 * MINUTE_MS + 1]),
    duration_s=st.sampled_from([None, 0, 90]),
    stop_on_failure=st.booleans(),
)
fleets = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=4)


def make_world(spec: RolloutSpec, fleet: list[tuple[int, int]], now: Instant) -> World:
    scopes = [availability_set(f"s{n}", *size) for n, size in enumerate(fleet)]
    try:
        return World(spec, scopes, now)
    except Refused:
        assume(False)
        raise


class OneRollout(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.ids = 0

    @initialize(spec=specs, fleet=fleets, now=st.sampled_from([MONDAY, BEFORE_DST]))
    def begin(self, spec: RolloutSpec, fleet: list[tuple[int, int]], now: Instant) -> None:
        self.world = make_world(spec, fleet, now)
        self.world.settle()

    def pick(self, data: st.DataObject, *phases: Phase) -> tuple[ScopeId, Event] | None:
        found = [
            (scope.id, event)
            for scope in self.world.scopes.values()
            for event in scope.events.values()
            if event.phase in phases
        ]
        return data.draw(st.sampled_from(found)) if found else None

    def new_id(self) -> EventId:
        self.ids += 1
        return event_id(self.ids)

    @rule(
        by=st.sampled_from([1, SECOND_MS, 5 * MINUTE_MS, HOUR_MS, DAY_MS]),
        crash=st.booleans(),
        failing=st.sampled_from([False, False, True]),
    )
    def time_passes(self, by: int, crash: bool, failing: bool) -> None:
        world = self.world
        world.failing = failing
        world.run_until(later(world.now, by))
        world.settle(crash=crash)

    @rule(data=st.data())
    def somebody_approves(self, data: st.DataObject) -> None:
        if found := self.pick(data, Phase.SCHEDULED):
            by = operator_actor("me")
            self.world.try_(found[0], Approve(event_id=found[1].id, by=by))

    @rule(data=st.data())
    def somebody_cancels_an_event(self, data: st.DataObject) -> None:
        if found := self.pick(data, Phase.SCHEDULED):
            self.world.try_(found[0], Cancel(event_id=found[1].id))

    @rule(data=st.data(), by=st.sampled_from([HOUR_MS, 3 * DAY_MS]))
    def somebody_postpones(self, data: st.DataObject, by: int) -> None:
        if found := self.pick(data, Phase.SCHEDULED):
            new = self.new_id()
            was_own = found[1].id in self.world.own
            if was_own:
                self.world.own.add(new)
                self.world.postponed.add(new)
            self.world.try_(
                found[0],
                Postpone(
                    event_id=found[1].id,
                    new_event_id=new,
                    not_before_ms=later(self.world.now, by),
                ),
            )

    @rule(
        data=st.data(),
        type=st.sampled_from([EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY]),
        notice=st.sampled_from([None, 15 * MINUTE_MS, 5 * HOUR_MS]),
        duration=st.sampled_from([10, 6 * 3600]),
    )
    def somebody_schedules_another(
        self, data: st.DataObject, type: EventType, notice: int | None, duration: int
    ) -> None:
        """Without notice: a failure that has happened, and keeps other domains from starting."""
        scope = data.draw(st.sampled_from(list(self.world.scopes.values())))
        if scope.roster.live:
            name = data.draw(st.sampled_from([each.name for each in scope.roster.live]))
            command = Schedule(
                event_id=self.new_id(),
                type=type,
                targets=(name,),
                notice_ms=notice,
                duration_s=duration,
                already_happened=notice is None,
            )
            self.world.try_(scope.id, command)

    @rule(data=st.data(), kind=st.sampled_from([OperationKind.RESTART, OperationKind.DELETE]))
    def an_owner_operates(self, data: st.DataObject, kind: OperationKind) -> None:
        scope = data.draw(st.sampled_from(list(self.world.scopes.values())))
        if scope.roster.live:
            name = data.draw(st.sampled_from([each.name for each in scope.roster.live]))
            new = self.new_id()
            self.world.try_(scope.id, Operate(event_id=new, kind=kind, instance=name))

    @rule(data=st.data())
    def an_instance_is_taken_out(self, data: st.DataObject) -> None:
        scope = data.draw(st.sampled_from(list(self.world.scopes.values())))
        live = [each.name for each in scope.roster.live]
        if len(live) > 1:
            gone = data.draw(st.sampled_from(live))
            left = {n: i for n, i in scope.roster.instances.items() if n != gone}
            roster = replace(scope.roster, instances=left)
            self.world.try_(scope.id, Declare(roster=roster, force=True))

    @rule(
        phase=st.sampled_from([RolloutPhase.PAUSED, RolloutPhase.RUNNING, RolloutPhase.CANCELLED])
    )
    def the_operator_decides(self, phase: RolloutPhase) -> None:
        self.world.change(replace(self.world.rollout, phase=phase))
        self.world.settle()

    def teardown(self) -> None:
        """However it went, it ends, and then nothing of it is pending."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.failing = False
        if world.rollout.phase is RolloutPhase.PAUSED:
            world.change(replace(world.rollout, phase=RolloutPhase.RUNNING))
        world.run_to_end()
        for scope in world.scopes.values():
            assert not any(event.id in world.own for event in scope.unfinished)
        phases = {step.phase for step in world.rollout.steps}
        assert phases.isdisjoint({StepPhase.WAITING, StepPhase.ANNOUNCED, StepPhase.STARTED})


TestOneRollout = OneRollout.TestCase
TestOneRollout.settings = settings(max_examples=200, stateful_step_count=25)
