"""Computes how steps and new events change the agent's memory. This module is pure."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from fairwarning.agent.config.model import Config, Phase
from fairwarning.agent.records import ActionState, Approval, Memory, Place, Progress, Record
from fairwarning.agent.rules import choose
from fairwarning.agent.steps import (
    Adopt,
    Approve,
    CutOff,
    Do,
    Forget,
    Release,
    Report,
    Skip,
    StateStep,
    Undo,
    Work,
)
from fairwarning.agent.undo import retry_time
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Instance, Status

NO_EVENTS: Mapping[str, Event] = {}
MARGIN_SHARE_MAX = 0.25
"""The largest part of the notice that the margin may take. An eviction gives only 30 seconds of
notice, which must leave time to act.
"""


def record_step(memory: Memory, step: StateStep | CutOff) -> Memory:
    """Return the memory after a step that only changes the memory."""
    match step:
        case Adopt():
            return memory.with_action_state(step.place, ActionState(progress=Progress.DONE))
        case Release():
            return memory.with_action_state(step.place, ActionState(progress=Progress.UNDONE))
        case Skip():
            return memory.with_action_state(
                step.place, ActionState(progress=Progress.SKIPPED, why=step.why)
            )
        case CutOff():
            why = f"cut off: {step.why}"
            return memory.with_action_state(
                step.place, ActionState(progress=Progress.FAILED, why=why)
            )
        case Forget():
            records = {id: each for id, each in memory.records.items() if id != step.event_id}
            return _without_unused(replace(memory, records=records))


def begin_step(memory: Memory, step: Work) -> Memory:
    """Return the memory that must be on disk before the step is executed."""
    match step:
        case Do():
            return memory.with_action_state(step.place, ActionState(progress=Progress.BEGUN))
        case Undo():
            state = memory.records[step.place.event_id].action_states[step.place.slot]
            return memory.with_action_state(step.place, replace(state, progress=Progress.UNDOING))
        case Approve():
            record = memory.records[step.event_id]
            return memory.with_record(replace(record, approval=Approval.BEGUN))
        case _:
            return memory


def complete_step(memory: Memory, step: Work) -> Memory:
    match step:
        case Do():
            return memory.with_action_state(step.place, ActionState(progress=Progress.DONE))
        case Undo():
            key = memory.key(step.place)
            kept = {each: value for each, value in memory.kept.items() if each != key}
            undone = memory.with_action_state(step.place, ActionState(progress=Progress.UNDONE))
            return replace(undone, kept=kept)
        case Approve():
            record = memory.records[step.event_id]
            return memory.with_record(replace(record, approval=Approval.DONE))
        case Report():
            record = memory.records[step.event_id]
            return memory.with_record(replace(record, is_reported=True))
        case _:
            return memory


def fail_step(memory: Memory, step: Work, why: str, at: datetime) -> Memory:
    match step:
        case Do():
            return memory.with_action_state(
                step.place, ActionState(progress=Progress.FAILED, why=why)
            )
        case Undo():
            state = memory.records[step.place.event_id].action_states[step.place.slot]
            failed = replace(
                state,
                why=why,
                undo_failures=state.undo_failures + 1,
                retry_at=retry_time(state.undo_failures, at),
            )
            return memory.with_action_state(step.place, failed)
        case _:
            return memory


def _without_unused(memory: Memory) -> Memory:
    """Return the memory without the kept values of forgotten actions.

    A later event must not use these values as its own.
    """
    used = {
        action.key(id)
        for id, record in memory.records.items()
        for phase in Phase
        for _, action in record.actions(phase)
    }
    return replace(memory, kept={key: each for key, each in memory.kept.items() if key in used})


def keep_value(memory: Memory, place: Place, name: str, value: str) -> Memory:
    key = memory.key(place)
    return replace(memory, kept={**memory.kept, key: {**memory.kept.get(key, {}), name: value}})


def update_events(
    memory: Memory,
    seen: Seen,
    config: Config,
    me: Instance,
    now: datetime,
    *,
    local: Mapping[str, Event] = NO_EVENTS,
) -> tuple[Memory, list[Record]]:
    """Return the memory after the events in `seen`, and the records that are new or have a new
    phase. `local` has the events that only this host knows.
    """
    records = dict(memory.records)
    events = {**seen.events, **local}
    for id, event in events.items():
        known = records.get(id)
        if known is None:
            records[id] = replace(_new(event, config, me, now), is_local=id in local)
        else:
            records[id] = _further(known, event)
    for id, record in memory.records.items():
        if id not in events and not record.is_over:
            records[id] = replace(record, phase=_end(record, now))
    moved = [each for id, each in records.items() if _has_moved(memory.records.get(id), each)]
    return replace(memory, seen=seen, records=records), moved


def _new(event: Event, config: Config, me: Instance, now: datetime) -> Record:
    notice_s = event.time_left_s(now)
    return Record(
        event=event,
        rule=choose(config, event, me, now),
        phase=Phase.STARTED if event.status is Status.STARTED else Phase.SCHEDULED,
        is_mine=event.concerns(me.name),
        not_before=event.not_before,
        margin_s=min(config.margin_s, notice_s * MARGIN_SHARE_MAX),
        ahead_s=config.ahead_s,
    )


def _further(record: Record, event: Event) -> Record:
    if record.is_over:
        return record
    return replace(
        record,
        event=event,
        phase=Phase.STARTED if event.status is Status.STARTED else record.phase,
        not_before=event.not_before or record.not_before,
    )


def _end(record: Record, now: datetime) -> Phase:
    """Return FINISHED or CANCELLED for an event that the service no longer shows.

    It is FINISHED if the event had started, was approved or was due.
    """
    is_due = record.not_before is not None and now >= record.not_before
    was_let_start = record.approval is not Approval.NONE or is_due
    has_begun = record.phase is Phase.STARTED or was_let_start
    return Phase.FINISHED if has_begun else Phase.CANCELLED


def _has_moved(before: Record | None, after: Record) -> bool:
    return before is None or before.phase is not after.phase
