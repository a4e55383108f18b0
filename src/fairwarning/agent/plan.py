"""Decides which action the agent does or undoes next, in which order and until when.

This module is pure. Work for an event begins `ahead` before NotBefore. Then the event goes through
the lists of its rule:

- The actions of `scheduled` run until the deadline (NotBefore minus the margin) or its start.
- The actions of `started` run until the event is over.
- Then every action that was begun is undone, in the opposite order.
- Then the actions of `finished` or `cancelled` run, and the event is forgotten.

At most one step runs at a time for an event. Events do not wait for each other, except for an
action that two events share. Such an action is done once, and undone with the last of the events.

The decisions depend only on the memory, which is stored, so they are the same after a crash. An
action that was begun and not completed is done again, or undone if its time is over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fairwarning.agent.approval import Facts, next_to_approval
from fairwarning.agent.config.model import OnFailure, Phase
from fairwarning.agent.records import Memory, Place, Progress, Record
from fairwarning.agent.steps import (
    Adopt,
    Approve,
    AskPeers,
    CheckHold,
    CutOff,
    Do,
    Drop,
    Forget,
    Release,
    Report,
    Skip,
    Step,
    Undo,
    Wait,
    Work,
)
from fairwarning.agent.undo import next_due, next_retry, undo_step

_OPEN = (None, Progress.BEGUN)
"""The progress of an action that is still to be done. With BEGUN, the agent stopped before the end
was stored.
"""
_TO_APPROVAL = (Approve, AskPeers, CheckHold, Report)
"""Steps that lead to the approval. They are useless once the event has started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What a decision depends on besides the stored memory: the time, the running steps, and what
    is known about approvals.
    """

    at: datetime
    facts: Facts = field(default_factory=Facts)
    running: Mapping[str, Work] = field(default_factory=dict)
    """The step that is running for each event, by event id."""
    is_certain: bool = True
    """Whether the service has answered. Before that, our clock may be wrong after a boot, and a
    remembered event may be over. So only work for events that are over is done before."""


def decide(memory: Memory, now: Now) -> list[Step]:
    """Return the next steps. There is at most one for each event."""
    claimed = {
        memory.key(step.place) for step in now.running.values() if isinstance(step, Do | Undo)
    }
    steps: list[Step] = []
    for id, record in memory.records.items():
        if id in now.running:
            steps += _while_running(record, now.running[id], now.at)
            continue
        if not now.is_certain and not record.is_over and not record.is_local:
            continue
        step = _next(memory, record, now, claimed)
        if step is None:
            continue
        if isinstance(step, Do | Undo | Adopt | Release):
            claimed.add(memory.key(step.place))
        steps.append(step)
    return steps


def deadline(record: Record) -> datetime | None:
    """Return when the actions of `scheduled` must have ended. It is None without a NotBefore."""
    if record.not_before is None:
        return None
    return record.not_before - timedelta(seconds=record.margin_s)


def is_done(record: Record, phase: Phase) -> bool:
    """Return whether every action of the phase has ended, with or without success."""
    return _first_open(record, phase) is None


def _while_running(record: Record, step: Work, at: datetime) -> Iterator[Step]:
    if isinstance(step, _TO_APPROVAL) and record.phase is not Phase.SCHEDULED:
        # It is too late to approve, and the next steps must not wait for an answer that may never
        # come. An approval that was sent stays BEGUN, because the service may have received it.
        yield Drop(event_id=record.event.id)
    if not isinstance(step, Do):
        return
    ends_at = deadline(record)
    match step.place.phase:
        case Phase.SCHEDULED if record.is_over:
            yield CutOff(place=step.place, why="the event is over")
        case Phase.SCHEDULED if record.phase is Phase.STARTED:
            yield CutOff(place=step.place, why="the event has started")
        case Phase.SCHEDULED if ends_at is not None and at >= ends_at:
            yield CutOff(place=step.place, why="no time is left before the event")
        case Phase.SCHEDULED if ends_at is not None:
            yield Wait(event_id=record.event.id, until=ends_at, why="an action is running")
        case Phase.STARTED if record.is_over:
            yield CutOff(place=step.place, why="the event is over")
        case _:
            pass


def _next(memory: Memory, record: Record, now: Now, claimed: set[str]) -> Step | None:
    """Return the next step of this event. It is None if nothing is left to do, or if another event
    is working on the same action.
    """
    match record.phase:
        case Phase.SCHEDULED if (far := _still_far(record, now.at)) is not None:
            return far
        case Phase.SCHEDULED:
            ends_at = deadline(record)
            why = "no time is left before the event"
            is_late = ends_at is not None and now.at >= ends_at
            if (place := _first_open(record, Phase.SCHEDULED)) is not None:
                if is_late:
                    return _leave_out(record, place, why)
                return _to_do(memory, record, place, claimed, ends_at)
            return next_to_approval(record, now.facts, now.at)
        case Phase.STARTED:
            if (place := _first_open(record, Phase.SCHEDULED)) is not None:
                return _leave_out(record, place, "the event has started")
            if (place := _first_open(record, Phase.STARTED)) is not None:
                return _to_do(memory, record, place, claimed, None)
            return None
        case Phase.FINISHED | Phase.CANCELLED:
            return _next_after(memory, record, now, claimed)


def _still_far(record: Record, at: datetime) -> Step | None:
    """Return a Wait if the event is still far away and no work on it has begun, else None."""
    if record.not_before is None or record.ahead_s is None or record.action_states:
        return None
    begins_at = record.not_before - timedelta(seconds=record.ahead_s)
    if at >= begins_at:
        return None
    return Wait(event_id=record.event.id, until=begins_at, why="the event is still far away")


def _next_after(memory: Memory, record: Record, now: Now, claimed: set[str]) -> Step | None:
    if (place := next_due(record, now.at)) is not None:
        return undo_step(memory, place, claimed)
    if (place := _first_open(record, record.phase)) is not None:
        return _to_do(memory, record, place, claimed, None)
    if (retry_at := next_retry(record)) is not None:
        why = "its undo failed and is tried again"
        return Wait(event_id=record.event.id, until=retry_at, why=why)
    return Forget(event_id=record.event.id)


def _first_open(record: Record, phase: Phase) -> Place | None:
    return next(
        (place for place, _ in record.actions(phase) if record.progress(place) in _OPEN), None
    )


def _to_do(
    memory: Memory, record: Record, place: Place, claimed: set[str], ends_at: datetime | None
) -> Step | None:
    if _has_stopped(record, place.phase):
        return _leave_out(record, place, "an action before it failed")
    action = memory.action(place)
    key = memory.key(place)
    if key in claimed:
        return None
    is_shared = action.is_undoable and place.phase in (Phase.SCHEDULED, Phase.STARTED)
    if is_shared and any(d.progress is Progress.DONE for d in memory.holders(key, besides=place)):
        return Adopt(place=place)
    return Do(place=place, ends_at=ends_at)


def _leave_out(record: Record, place: Place, why: str) -> Step:
    """Return the step that leaves an action out: a Skip, or a CutOff if the action was begun before
    a crash and may be half done.
    """
    is_begun = record.progress(place) is Progress.BEGUN
    return CutOff(place=place, why=why) if is_begun else Skip(place=place, why=why)


def _has_stopped(record: Record, phase: Phase) -> bool:
    return any(
        record.progress(place) in (Progress.FAILED, Progress.SKIPPED)
        and action.on_failure is OnFailure.STOP
        for place, action in record.actions(phase)
    )
