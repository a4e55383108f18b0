"""How memory changes with each step, before and after it. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta

from fairwarning.agent.model import Config, Phase
from fairwarning.agent.records import Approval, Deed, Mark, Memory, Place, Record
from fairwarning.agent.rules import choose
from fairwarning.agent.steps import (
    Adopt,
    Approve,
    CutOff,
    Do,
    Forget,
    Noted,
    Release,
    Report,
    Skip,
    Undo,
    Work,
)
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Instance, Status

UNDO_RETRY_S = 10.0
UNDO_RETRY_S_MAX = 300.0


def note(memory: Memory, step: Noted | CutOff) -> Memory:
    match step:
        case Adopt():
            return memory.with_deed(step.place, Deed(mark=Mark.DONE))
        case Release():
            return memory.with_deed(step.place, Deed(mark=Mark.UNDONE))
        case Skip():
            return memory.with_deed(step.place, Deed(mark=Mark.SKIPPED, why=step.why))
        case CutOff():
            why = f"cut off: {step.why}"
            return memory.with_deed(step.place, Deed(mark=Mark.FAILED, why=why))
        case Forget():
            records = {id: each for id, each in memory.records.items() if id != step.event_id}
            return _without_unused(replace(memory, records=records))


def begin(memory: Memory, step: Work) -> Memory:
    """To be on disk before the step is carried out."""
    match step:
        case Do():
            return memory.with_deed(step.place, Deed(mark=Mark.BEGUN))
        case Undo():
            deed = memory.records[step.place.event_id].deeds[step.place.slot]
            return memory.with_deed(step.place, replace(deed, mark=Mark.UNDOING))
        case Approve():
            record = memory.records[step.event_id]
            return memory.with_record(replace(record, approval=Approval.BEGUN))
        case _:
            return memory


def succeed(memory: Memory, step: Work) -> Memory:
    match step:
        case Do():
            return memory.with_deed(step.place, Deed(mark=Mark.DONE))
        case Undo():
            key = memory.key(step.place)
            kept = {each: value for each, value in memory.kept.items() if each != key}
            undone = memory.with_deed(step.place, Deed(mark=Mark.UNDONE))
            return replace(undone, kept=kept)
        case Approve():
            record = memory.records[step.event_id]
            return memory.with_record(replace(record, approval=Approval.DONE))
        case Report():
            record = memory.records[step.event_id]
            return memory.with_record(replace(record, is_reported=True))
        case _:
            return memory


def fail(memory: Memory, step: Work, why: str, at: datetime) -> Memory:
    match step:
        case Do():
            return memory.with_deed(step.place, Deed(mark=Mark.FAILED, why=why))
        case Undo():
            deed = memory.records[step.place.event_id].deeds[step.place.slot]
            pause_s = min(UNDO_RETRY_S_MAX, UNDO_RETRY_S * 2 ** min(deed.undo_failures, 10))
            retry_at = at + timedelta(seconds=pause_s)
            failed = replace(deed, why=why, undo_failures=deed.undo_failures + 1, retry_at=retry_at)
            return memory.with_deed(step.place, failed)
        case _:
            return memory


def _without_unused(memory: Memory) -> Memory:
    """What an action kept that is never undone must not be taken for new by a later event."""
    used = {
        action.key(id)
        for id, record in memory.records.items()
        for phase in Phase
        for _, action in record.actions(phase)
    }
    return replace(memory, kept={key: each for key, each in memory.kept.items() if key in used})


def keep(memory: Memory, place: Place, name: str, value: str) -> Memory:
    key = memory.key(place)
    return replace(memory, kept={**memory.kept, key: {**memory.kept.get(key, {}), name: value}})


# From what the client has seen to what the agent remembers. Pure.
MARGIN_SHARE_MAX = 0.25
"""Of the notice: an eviction's 30 seconds must leave time to do something."""


def absorb(
    memory: Memory, seen: Seen, config: Config, me: Instance, now: datetime
) -> tuple[Memory, list[Record]]:
    """And the records that are new or have come to another phase."""
    records = dict(memory.records)
    for id, event in seen.events.items():
        known = records.get(id)
        records[id] = _new(event, config, me, now) if known is None else _further(known, event)
    for id, record in memory.records.items():
        if id not in seen.events and not record.is_over:
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
    """The service shows only that it is gone: cancelled and over look alike."""
    is_due = record.not_before is not None and now >= record.not_before
    was_let_start = record.approval is not Approval.NONE or is_due
    has_begun = record.phase is Phase.STARTED or was_let_start
    return Phase.FINISHED if has_begun else Phase.CANCELLED


def _has_moved(before: Record | None, after: Record) -> bool:
    return before is None or before.phase is not after.phase
