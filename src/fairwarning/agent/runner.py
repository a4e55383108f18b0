"""The agent at work: watches, lets `plan` decide, and carries out. It decides nothing itself."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from fairwarning.agent import state_changes
from fairwarning.agent.actions.base import Doer
from fairwarning.agent.approval import Facts
from fairwarning.agent.clock import Clock
from fairwarning.agent.execute import Approver, Carrier, Failed
from fairwarning.agent.log_messages import tell_failure, tell_moved, tell_step, tell_success
from fairwarning.agent.metrics import Figures
from fairwarning.agent.model import Config, Settings
from fairwarning.agent.plan import Now, decide
from fairwarning.agent.records import Mark, Memory
from fairwarning.agent.state_changes import absorb
from fairwarning.agent.state_file import StateProblem
from fairwarning.agent.steps import (
    CutOff,
    Do,
    Drop,
    Forget,
    Noted,
    Step,
    Undo,
    Wait,
    Work,
    event_of,
)
from fairwarning.client.changes import Seen
from fairwarning.client.model import Instance

_log = logging.getLogger(__name__)


class Events(Approver, Protocol):
    """The service, as the runner needs it."""

    seen: Seen

    @property
    def has_answered(self) -> bool:
        """In this process, so that `seen` and the time are the service's."""

    async def follow(self) -> None:
        """Keeps `seen` as the service shows it, until it is cancelled."""


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
        doer_of: Callable[[Settings], Doer],
        figures: Figures,
        pretended: tuple[type[Step], ...] = (),
    ) -> None:
        """`pretended`: steps that only say what they would do, and nothing more is said of."""
        self.config = config
        self.memory = memory
        self._service = service
        self._clock = clock
        self._state = state
        self._figures = figures
        self._pretended = pretended
        self._carrier = Carrier(
            me=me, service=service, clock=clock, doer_of=doer_of, figures=figures
        )
        self._running: dict[str, _Running] = {}
        self._dropped: set[asyncio.Task[None]] = set()
        """They are ending, and nobody waits for it: a command may take its time."""
        self._is_stopping = False
        self._is_impatient = False

    @property
    def me(self) -> Instance:
        return self._carrier.me

    def reload(self, config: Config, me: Instance) -> None:
        """It counts for events that are seen from now on."""
        self.config = config
        self._carrier.me = me

    @property
    def is_idle(self) -> bool:
        """Nothing is in work, and there is nothing to do before time passes or news comes."""
        return not self._running and self._service.seen == self.memory.seen

    def is_drained(self, event_id: str) -> list[str]:
        """What another agent is told that asks."""
        record = self.memory.records.get(event_id)
        is_ready = record is not None and record.is_reported and not record.is_over
        return [self.me.name] if is_ready else []

    def stop(self) -> None:
        """What is in work is left as begun, so that the next start goes on with it."""
        self._is_stopping = True
        self._clock.nudge()

    def heard(self) -> None:
        """The service has answered a poll. An idle agent sleeps on: it hears one a second."""
        is_owed = bool(self.memory.records) or not self._figures.is_state_written
        if is_owed or self._is_impatient or self._service.seen != self.memory.seen:
            self._clock.nudge()

    async def run(self, is_done: Callable[[], bool] | None = None) -> None:
        """Until `stop`. The state is then what a crash would have left, and nothing is undone.

        `is_done` is asked whenever there is nothing to do at once.
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
        """Starts all that is to be done now; returns when there is more, at the latest."""
        if not self._figures.is_state_written:
            self._commit(self.memory)
        while True:
            self._absorb()
            steps = decide(self.memory, self._now())
            waits = [step.until for step in steps if isinstance(step, Wait)]
            if not [each for each in steps if self._take(each)]:
                return min(waits, default=None)

    def _absorb(self) -> None:
        seen = self._service.seen
        # One that was taken to be over may be back while it is still undone: it begins anew then.
        if seen == self.memory.seen and seen.events.keys() <= self.memory.records.keys():
            return
        now = self._clock.now()
        memory, moved = absorb(self.memory, seen, self.config, self.me, now)
        self._commit(memory)
        for record in moved:
            self._figures.count("events_total", type=record.event.type, phase=record.phase.value)
            tell_moved(record, now)

    def _now(self) -> Now:
        carrier = self._carrier
        return Now(
            at=self._clock.now(),
            facts=Facts(
                me=self.me.name,
                peers=carrier.heard,
                holds=carrier.holds,
                not_again_before={id: each.at for id, each in carrier.not_again_before.items()},
            ),
            running={id: each.step for id, each in self._running.items()},
            is_certain=self._service.has_answered,
        )

    def _take(self, step: Step) -> bool:
        """Whether it changed anything."""
        if isinstance(step, Wait):
            return False
        if isinstance(step, CutOff) and event_of(step) in self._running:
            return self._cut_off(self._running[event_of(step)], step)
        if isinstance(step, Drop):
            return self._drop(self._running.pop(step.event_id).task)
        if not isinstance(step, self._pretended):
            tell_step(step, self.memory, self.me)
        if isinstance(step, Noted | CutOff):
            if isinstance(step, Forget):
                self._carrier.forget(self.memory.records[step.event_id])
            self._commit(state_changes.note(self.memory, step))
        else:
            self._commit(state_changes.begin(self.memory, step))
            task = asyncio.create_task(self._work(step))
            self._running[event_of(step)] = _Running(step=step, task=task)
        return True

    def _cut_off(self, running: _Running, step: CutOff) -> bool:
        if running.cut is not None:
            return False
        tell_step(step, self.memory, self.me)
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
            await self._carrier.carry_out(step, self.memory, partial(self._keep, step))
            self._commit(state_changes.succeed(self.memory, step))
            if not isinstance(step, self._pretended):
                tell_success(step, self.memory, self.me)
        except Failed as problem:
            self._fail(step, str(problem))
        except asyncio.CancelledError:
            running = self._current(step)
            if running is None or running.cut is None:
                raise
            self._figures.count("actions_total", purpose="do", outcome="cut off")
            self._commit(state_changes.note(self.memory, running.cut))
        except Exception:
            # A bug in one action must not take the others with it.
            _log.exception("an action broke")
            self._fail(step, "it broke; the log says where")
        finally:
            if self._current(step) is not None:
                del self._running[event_of(step)]
            self._clock.nudge()

    def _current(self, step: Work) -> _Running | None:
        """None if it was dropped, and the event may be at another step."""
        running = self._running.get(event_of(step))
        return running if running is not None and running.step is step else None

    def _fail(self, step: Work, why: str) -> None:
        self._commit(state_changes.fail(self.memory, step, why, self._clock.now()))
        tell_failure(step, self.memory, self.me, why)

    def _keep(self, step: Work, name: str, value: str) -> None:
        assert isinstance(step, Do | Undo), "only actions keep something"
        self._commit(state_changes.keep(self.memory, step.place, name, value))

    def _commit(self, memory: Memory) -> None:
        """On disk before anybody acts on it. A full disk must not keep a VM from draining, so
        the agent then goes on with what it has in mind, says so, and writes it with the next
        poll: an old state would have the next start undo again what was undone long ago."""
        self.memory = memory
        self._figures.gauge("events", len(memory.records))
        self._figures.gauge("undo_owed", _owed(memory))
        try:
            self._state.save(memory)
        except StateProblem as problem:
            self._figures.count("state_writes_failed_total")
            if self._figures.is_state_written:
                _log.error("%s; a restart now would not know what is to be undone", problem)
            self._figures.is_state_written = False
        else:
            self._figures.is_state_written = True


def _owed(memory: Memory) -> int:
    return sum(
        deed.mark is Mark.UNDOING and deed.undo_failures > 0
        for record in memory.records.values()
        for deed in record.deeds.values()
    )
