"""Runs the agent. It watches events, starts the steps that `plan` decides, and stores the state."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from fairwarning.agent import state_changes
from fairwarning.agent.actions.base import ActionHandler
from fairwarning.agent.approval import Facts, why_not_approved
from fairwarning.agent.clock import Clock
from fairwarning.agent.config.model import Config, Settings
from fairwarning.agent.execute import Approver, Failed, StepExecutor
from fairwarning.agent.logs import log_failure, log_phase, log_step, log_success, say
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.plan import Now, decide
from fairwarning.agent.records import Memory, Progress
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.state_file import StateProblem
from fairwarning.agent.steps import (
    CutOff,
    Do,
    Drop,
    Forget,
    StateStep,
    Step,
    Undo,
    Wait,
    Work,
    event_of,
)
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Instance

_log = logging.getLogger(__name__)


class Events(Approver, Protocol):
    """The part of the service's client that the runner uses."""

    seen: Seen

    @property
    def has_answered(self) -> bool:
        """Whether the service has answered since this process started, so that `seen` is new."""

    async def follow(self) -> None:
        """Keep `seen` up to date until cancelled."""


class State(Protocol):
    def save(self, memory: Memory) -> None: ...


@dataclass(slots=True, kw_only=True)
class _Running:
    step: Work
    task: asyncio.Task[None]
    cut: CutOff | None = field(default=None)


class Runner:
    def __init__(
        self,
        *,
        config: Config,
        me: Instance,
        service: Events,
        clock: Clock,
        state: State,
        memory: Memory,
        handler_of: Callable[[Settings], ActionHandler],
        metrics: Metrics,
        simulated_steps: tuple[type[Step], ...] = (),
    ) -> None:
        """`simulated_steps` are kinds of steps that log by themselves what they would do."""
        self.config = config
        self.memory = memory
        self._service = service
        self._clock = clock
        self._state = state
        self._metrics = metrics
        self._simulated_steps = simulated_steps
        self._executor = StepExecutor(
            me=me, service=service, clock=clock, handler_of=handler_of, metrics=metrics
        )
        self._running: dict[str, _Running] = {}
        self._dropped: set[asyncio.Task[None]] = set()
        """Cancelled tasks that may still run, because a command may be slow to end."""
        self.approval_reasons = ApprovalReasons()
        self.on_settled: Callable[[], bool] = lambda: False
        """Called when all due steps were started. It returns whether there may be more to do."""
        self._local: Mapping[str, Event] = {}
        self._local_taken: Mapping[str, Event] = {
            id: each.event for id, each in memory.unfinished_local.items()
        }
        """The local events that the memory has, at first those of an earlier process."""
        self._is_stopping = False
        self._is_impatient = False

    @property
    def me(self) -> Instance:
        return self._executor.me

    def reload(self, config: Config, me: Instance) -> None:
        """Use a new config, and new data about this VM, for events that are first seen later."""
        self.config = config
        self._executor.me = me

    @property
    def is_idle(self) -> bool:
        """Whether no step is running and all changes of events are processed."""
        return not self._running and self._service.seen == self.memory.seen

    def is_drained(self, event_id: str) -> list[str]:
        """Return a list with this VM's name if it is ready for the event, else an empty list."""
        record = self.memory.records.get(event_id)
        is_ready = record is not None and record.is_reported and not record.is_over
        return [self.me.name] if is_ready else []

    def show_local(self, events: Mapping[str, Event]) -> None:
        """Show the runner the events that only this host knows, instead of those before."""
        self._local = events
        self._clock.nudge()

    def stop(self) -> None:
        """Make `run` return. Running steps stay stored as begun, so the next start repeats them."""
        self._is_stopping = True
        self._clock.nudge()

    def on_poll(self) -> None:
        """Wake the runner after a poll if there is work. An idle agent sleeps on."""
        is_owed = bool(self.memory.records) or not self._metrics.is_state_written
        if is_owed or self._is_impatient or self._service.seen != self.memory.seen:
            self._clock.nudge()

    async def run(self, is_done: Callable[[], bool] | None = None) -> None:
        """Run until `stop` is called. Nothing is undone then; the state is the same as in a crash.

        If `is_done` is given, this also returns when `is_done` returns true. It is called whenever
        all due steps were started.
        """
        self._is_impatient = is_done is not None
        watching = asyncio.create_task(self._service.follow())
        try:
            while not self._is_stopping:
                until = self.advance()
                if is_done is not None and is_done():
                    return
                if watching.done():
                    watching.result()
                await self._clock.wait(until)
        finally:
            running = (each.task for each in self._running.values())
            tasks = [watching, *running, *self._dropped]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def advance(self) -> datetime | None:
        """Start all steps that are due. Return the time of the next one, or None."""
        if not self._metrics.is_state_written:
            self._commit(self.memory)
        while True:
            self._update_events()
            steps = decide(self.memory, self._now())
            waits = [step.until for step in steps if isinstance(step, Wait)]
            if not [each for each in steps if self._take(each)]:
                if self.on_settled():
                    continue
                self.approval_reasons.update(self.memory, steps, self.me.name)
                return min(waits, default=None)

    def _update_events(self) -> None:
        seen, local = self._service.seen, self._local
        is_same = seen == self.memory.seen and local == self._local_taken
        # An event that seemed over may come back during its undo. After the undo, it begins again.
        if is_same and (seen.events.keys() | local.keys()) <= self.memory.records.keys():
            return
        now = self._clock.now()
        memory, moved = update_events(self.memory, seen, self.config, self.me, now, local=local)
        self._local_taken = local
        self._commit(memory)
        for record in moved:
            self._metrics.count("events_total", type=record.event.type, phase=record.phase.value)
            log_phase(record, now)

    def _now(self) -> Now:
        executor = self._executor
        return Now(
            at=self._clock.now(),
            facts=Facts(
                me=self.me.name,
                peers=executor.peer_answers,
                holds=executor.holds,
                not_again_before={id: each.at for id, each in executor.not_again_before.items()},
            ),
            running={id: each.step for id, each in self._running.items()},
            is_certain=self._service.has_answered,
        )

    def _take(self, step: Step) -> bool:
        """Start a step, or store its result if it only changes the memory. Return whether anything
        changed.
        """
        if isinstance(step, Wait):
            return False
        if isinstance(step, CutOff) and event_of(step) in self._running:
            return self._cut_off(self._running[event_of(step)], step)
        if isinstance(step, Drop):
            return self._drop(self._running.pop(step.event_id).task)
        if not isinstance(step, self._simulated_steps):
            log_step(step, self.memory, self.me)
        if isinstance(step, StateStep | CutOff):
            if isinstance(step, Forget):
                self._executor.forget(self.memory.records[step.event_id])
            self._commit(state_changes.record_step(self.memory, step))
        else:
            self._commit(state_changes.begin_step(self.memory, step))
            task = asyncio.create_task(self._work(step))
            self._running[event_of(step)] = _Running(step=step, task=task)
        return True

    def _cut_off(self, running: _Running, step: CutOff) -> bool:
        if running.cut is not None:
            return False
        log_step(step, self.memory, self.me)
        running.cut = step
        running.task.cancel()
        return True

    def _drop(self, task: asyncio.Task[None]) -> bool:
        self._dropped.add(task)
        task.add_done_callback(self._dropped.discard)
        task.cancel()
        return True

    async def _work(self, step: Work) -> None:
        try:
            await self._executor.execute(step, self.memory, partial(self._keep, step))
            self._commit(state_changes.complete_step(self.memory, step))
            if not isinstance(step, self._simulated_steps):
                log_success(step, self.memory, self.me)
        except Failed as problem:
            self._fail(step, str(problem))
        except asyncio.CancelledError:
            running = self._current(step)
            if running is None or running.cut is None:
                raise
            self._metrics.count("actions_total", purpose="do", outcome="cut off")
            self._commit(state_changes.record_step(self.memory, running.cut))
        except Exception:
            # A bug in one action must not stop the others.
            _log.exception("an action broke")
            self._fail(step, "it broke; the log says where")
        finally:
            if self._current(step) is not None:
                del self._running[event_of(step)]
            self._clock.nudge()

    def _current(self, step: Work) -> _Running | None:
        """Return the running entry of this step. It is None if the step was dropped."""
        running = self._running.get(event_of(step))
        return running if running is not None and running.step is step else None

    def _fail(self, step: Work, why: str) -> None:
        self._commit(state_changes.fail_step(self.memory, step, why, self._clock.now()))
        log_failure(step, self.memory, self.me, why)

    def _keep(self, step: Work, name: str, value: str) -> None:
        assert isinstance(step, Do | Undo), "only actions keep something"
        self._commit(state_changes.keep_value(self.memory, step.place, name, value))

    def _commit(self, memory: Memory) -> None:
        """Set and store the memory. This happens before anything acts on it.

        A full disk must not stop a drain. So if the state cannot be written, the agent logs that
        and goes on. It writes again at the next poll, because a restart with an old state could
        undo actions a second time.
        """
        self.memory = memory
        self._metrics.gauge("events", len(memory.records))
        self._metrics.gauge("undo_owed", _owed(memory))
        try:
            self._state.save(memory)
        except StateProblem as problem:
            self._metrics.count("state_writes_failed_total")
            if self._metrics.is_state_written:
                _log.error("%s; a restart now would not know what is to be undone", problem)
            self._metrics.is_state_written = False
        else:
            self._metrics.is_state_written = True


def _owed(memory: Memory) -> int:
    return sum(
        state.progress is Progress.UNDOING and state.undo_failures > 0
        for record in memory.records.values()
        for state in record.action_states.values()
    )


class ApprovalReasons:
    """Remembers why each event is not approved, and logs each reason only once for an event."""

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.now: Mapping[str, str] = {}
        """The present reasons, by the event's id."""
        self._said: set[tuple[str, str]] = set()

    def update(self, memory: Memory, steps: Iterable[Step], me: str) -> None:
        waits = {step.event_id: step for step in steps if isinstance(step, Wait)}
        found = {
            id: why
            for id, record in memory.records.items()
            if (why := why_not_approved(record, me, waits.get(id))) is not None
        }
        # The reasons are kept before they are logged, so that who reads the log finds them.
        is_new = found != self.now
        self.now = found
        if is_new:
            self.on_change()
        for pair in found.items():
            if pair not in self._said:
                id, why = pair
                say(f"not approved, because {why}", event=id, why=why)
        # An event that is over is forgotten, so that this set does not grow.
        known = {each for each in self._said if each[0] in memory.records}
        self._said = known | {*found.items()}
