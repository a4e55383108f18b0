"""This module has the values of a rollout: its specification, its steps and its state."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from fairwarning.core.identifiers import guid_of
from fairwarning.core.instants import Instant, to_datetime
from fairwarning.core.model import Actor, EventId, EventType, InstanceName, ScopeId

RolloutId = NewType("RolloutId", str)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60


class RolloutPhase(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepPhase(StrEnum):
    WAITING = "waiting"
    ANNOUNCED = "announced"
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    """The step was never announced, because it had no instance left or the rollout ended before."""


# Tuples, because a lookup in a set is much slower for enums, and there may be many steps.
ACTIVE = (StepPhase.ANNOUNCED, StepPhase.STARTED)
UNFINISHED = (StepPhase.WAITING, *ACTIVE)
STOPPED = (RolloutPhase.FAILED, RolloutPhase.CANCELLED)


class Window(Struct, frozen=True, kw_only=True):
    """The days and local times at which maintenance may happen. A window may pass midnight."""

    days: tuple[int, ...]
    """The days on which the window opens. 0 is Monday."""
    from_minute: int
    to_minute: int
    """The minute of the day at which the window closes. 1440 is midnight at the end of the day."""

    @property
    def day_names(self) -> tuple[str, ...]:
        return tuple(DAYS[day] for day in self.days)

    @property
    def opens(self) -> str:
        return _clock_text(self.from_minute)

    @property
    def closes(self) -> str:
        return _clock_text(self.to_minute)

    def __str__(self) -> str:
        return f"{','.join(self.day_names)} {self.opens}-{self.closes}"


def _clock_text(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


class Blackout(Struct, frozen=True, kw_only=True):
    """Whole days on which nothing may happen. `first` and `last` are included."""

    first: date
    last: date

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}/{self.last}"


class Calendar(Struct, frozen=True, kw_only=True):
    """The times at which events may happen. Without windows this is always, except in blackouts."""

    windows: tuple[Window, ...] = ()
    time_zone: str = "UTC"
    blackouts: tuple[Blackout, ...] = ()


class RolloutSpec(Struct, frozen=True, kw_only=True):
    """The rollout that an operator asks for. `checks.refuse_spec` checks it."""

    type: EventType
    scope_ids: tuple[ScopeId, ...] = ()
    """The scopes, in the order in which they are done. Empty means all at its creation."""
    name: str = ""
    description: str | None = None
    """The description of the events. None means the usual text of the platform."""
    notice_ms: int | None = None
    """The notice of the events. None means the minimum notice of each scope."""
    duration_s: int | None = None
    scopes_at_once: int = 1
    pause_ms: int = 0
    """How long to wait after each update domain before the next one is announced."""
    stop_on_failure: bool = True
    windows: tuple[Window, ...] = ()
    time_zone: str = "UTC"
    blackouts: tuple[Blackout, ...] = ()

    @property
    def calendar(self) -> Calendar:
        return Calendar(windows=self.windows, time_zone=self.time_zone, blackouts=self.blackouts)


class RolloutStep(Struct, frozen=True, kw_only=True):
    """The maintenance of one update domain. The times of a waiting step are estimates of a plan."""

    scope_id: ScopeId
    update_domain: int
    instances: tuple[InstanceName, ...]
    phase: StepPhase = StepPhase.WAITING
    tries: int = 0
    """How many announcements were withdrawn because the window closed before the event started."""
    event_id: EventId | None = None
    announced_ms: Instant | None = None
    not_before_ms: Instant | None = None
    ended_ms: Instant | None = None


class Rest(Struct, frozen=True, kw_only=True):
    """What a large rollout has besides the steps that are loaded (`parts.py`)."""

    parts: int
    """How many parts there are. They are numbered from 0 on."""
    opened: tuple[int, ...] = ()
    """The open parts. Their steps are `Rollout.steps`, in this order."""
    next: int = 0
    """The first part that was never opened."""
    waiting: int = 0
    """How many steps are in parts that were never opened."""
    closed: Mapping[StepPhase, int] = {}
    """How many steps of closed parts are in each phase."""
    open: Mapping[StepPhase, int] = {}
    """How many steps of open parts were in each phase when the rollout was stored."""


class Rollout(Struct, frozen=True, kw_only=True):
    id: RolloutId
    spec: RolloutSpec
    phase: RolloutPhase = RolloutPhase.RUNNING
    created_ms: Instant
    created_by: Actor
    steps: tuple[RolloutStep, ...]
    """The steps in the order of the scopes, and within a scope by update domain. A large rollout
    has only those of its open parts here, or none if nobody has loaded them.
    """
    ended_ms: Instant | None = None
    """When the last step ended. None while a step is waiting or under way."""
    outcome: str = ""
    why: str = ""
    """The reason that its creator gave. The history of its events says it too."""
    seed: str | None = None
    """A text that identifies the request, so that a repeated request creates no second rollout."""
    rest: Rest | None = None
    """What is not in `steps`. It is None if all steps are there."""

    @property
    def counts(self) -> dict[StepPhase, int]:
        """How many of all steps are in each phase."""
        if self.rest is None:
            return dict(Counter(step.phase for step in self.steps))
        counts = Counter(self.rest.closed)
        counts.update(self.rest.open)
        is_over = self.is_finished and self.ended_ms is not None
        unopened = StepPhase.SKIPPED if is_over else StepPhase.WAITING
        counts[unopened] += self.rest.waiting
        return {phase: counts[phase] for phase in StepPhase if counts[phase]}

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will be announced. Started events may still be under way."""
        return self.phase not in (RolloutPhase.RUNNING, RolloutPhase.PAUSED)


_NAMESPACE = bytes.fromhex("5b0d6f7c3d5e4b0a9c1e8a4b7f2d6e90")
_ROLLOUT_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}", re.ASCII)


def rollout_id(created: Instant, salt: EventId) -> RolloutId:
    """Return an id like `20261116-093000-3f9a1c`: the time in UTC, and the end of `salt`."""
    return RolloutId(f"{to_datetime(created):%Y%m%d-%H%M%S}-{salt[-6:].lower()}")


def is_rollout_id(text: str) -> bool:
    return _ROLLOUT_ID.fullmatch(text) is not None


def event_id_of(rollout: RolloutId, step: RolloutStep) -> EventId:
    name = f"{rollout}\n{step.scope_id}\n{step.update_domain}\n{step.tries}"
    return EventId(guid_of(name, _NAMESPACE).upper())
