"""The agent without its event loop, in a world that can be stopped between any two instants.

It does what the runner does, in the same order: writes down, does, writes down. A crash loses
everything but the disk and the world.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fairwarning.agent import state_changes
from fairwarning.agent.approval import Answer, Facts, is_ready
from fairwarning.agent.config.model import Config, Run
from fairwarning.agent.plan import Now, decide
from fairwarning.agent.records import Memory, Place, Progress
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.steps import (
    Approve,
    AskPeers,
    CheckHold,
    CutOff,
    Do,
    Drop,
    Report,
    Step,
    Undo,
    Wait,
    Work,
    event_of,
)
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Status
from tests.agent.values import ME, NOW

STEPS_MAX = 2_000


class Crash(Exception):
    """kill -9."""


@dataclass(kw_only=True)
class Machine:
    config: Config
    failing: frozenset[str] = frozenset()
    hanging: frozenset[str] = frozenset()
    crashes: frozenset[int] = frozenset()
    """At which instants, counted from 1."""
    dice: random.Random = field(default_factory=lambda: random.Random(0))
    done: set[str] = field(default_factory=set)
    """The world: what is drained at this moment."""
    history: list[str] = field(default_factory=list)
    approved: set[str] = field(default_factory=set)
    disk: Memory = field(default_factory=Memory)
    instants: int = 0
    stays_down: bool = False
    """After a crash, until the next news; else it is back at once."""

    def __post_init__(self) -> None:
        self.memory = self.disk
        self.running: dict[str, Do] = {}
        self.heard: dict[str, Answer] = {}

    def show(self, seen: Seen, at: datetime) -> datetime | None:
        """Goes on until there is nothing to do; returns when there is more."""
        while True:
            try:
                return self._until_idle(seen, at)
            except Crash:
                self.memory = self.disk
                self.running, self.heard = {}, {}
                if self.stays_down:
                    return at

    def settle(self, at: datetime) -> None:
        """Lets all time pass that undoing needs."""
        until = self.show(Seen(), at)
        for _ in range(50):
            if until is None:
                return
            until = self.show(Seen(), max(at, until))
        raise AssertionError("it never ends")

    def _until_idle(self, seen: Seen, at: datetime) -> datetime | None:
        if seen != self.memory.seen:
            memory, _ = update_events(self.memory, seen, self.config, ME, at)
            self._save(memory)
        for _ in range(STEPS_MAX):
            facts = Facts(me=ME.name, peers=self.heard)
            steps = decide(self.memory, Now(at=at, facts=facts, running=self.running))
            self.check()
            todo = [each for each in steps if not isinstance(each, Wait)]
            if not todo:
                return min((s.until for s in steps if isinstance(s, Wait)), default=None)
            self._take_all(todo, at)
        raise AssertionError("it goes round in circles")

    def _take_all(self, given: Sequence[Step], at: datetime) -> None:
        """As the runner: all are begun before the first has ended, and they end in any order."""
        steps = [*given]
        self.dice.shuffle(steps)
        begun = [each for each in steps if self._begin(each)]
        self.dice.shuffle(begun)
        for step in begun:
            assert isinstance(step, Work)
            self._work(step, at)

    def check(self) -> None:
        """What one event still needs is never undone for another."""
        for record in self.memory.records.values():
            for phase in ("scheduled", "started"):
                for place, action in record.actions(phase):  # type: ignore[arg-type]
                    state = record.action_state(place)
                    if (
                        state is None
                        or state.progress is not Progress.DONE
                        or not action.is_undoable
                    ):
                        continue
                    assert self._name(place) in self.done, f"{place} was undone too early"

    def _begin(self, step: Step) -> bool:
        """Whether there is more to it than writing it down."""
        if isinstance(step, Work):
            self._save(state_changes.begin_step(self.memory, step))
            return True
        assert not isinstance(step, Wait | Drop), "only actions hang here"
        if isinstance(step, CutOff):
            self.running.pop(event_of(step), None)
        self._save(state_changes.record_step(self.memory, step))
        return False

    def _work(self, step: Work, at: datetime) -> None:
        self._instant()
        why = self._execute(step, at)
        if isinstance(step, Do) and self._name(step.place) in self.hanging:
            self.running[event_of(step)] = step
            return
        self._instant()
        if why:
            self._save(state_changes.fail_step(self.memory, step, why, at))
        else:
            self._save(state_changes.complete_step(self.memory, step))

    def _execute(self, step: Work, at: datetime) -> str:
        match step:
            case Do():
                name = self._name(step.place)
                self.done.add(name)
                self.history.append(f"{step.place.phase}:{name}")
                return "it failed" if name in self.failing else ""
            case Undo():
                name = self._name(step.place)
                state = self.memory.records[step.place.event_id].action_states[step.place.slot]
                self.history.append(f"undo:{name}")
                if f"un{name}" in self.failing and state.undo_failures < 3:
                    return "it failed"
                self.done.discard(name)
            case Approve():
                record = self.memory.records[step.event_id]
                assert record.is_mine
                assert is_ready(record), "never after a failed drain"
                self.approved.add(step.event_id)
            case Report() | AskPeers():
                self.heard[step.event_id] = Answer(at=at)
            case CheckHold():
                raise AssertionError("no policy here holds")
        return ""

    def _name(self, place: Place) -> str:
        settings = self.memory.action(place).settings
        assert isinstance(settings, Run)
        return settings.command[0]

    def _save(self, memory: Memory) -> None:
        self._instant()
        self.memory = memory
        self.disk = memory
        self._instant()

    def _instant(self) -> None:
        self.instants += 1
        if self.instants in self.crashes:
            raise Crash


def later(at: datetime, seconds: float) -> datetime:
    return at + timedelta(seconds=seconds)


def seen(*events: Event) -> Seen:
    return Seen(events={each.id: each for each in events})


def started(shown: Event) -> Event:
    return replace(shown, status=Status.STARTED, not_before=None)


def remembered(rules: Config, *events: Event) -> Memory:
    return update_events(Memory(), seen(*events), rules, ME, NOW)[0]
