"""How memory changes with each step, before and after it. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta

from fairwarning.agent.model import Phase
from fairwarning.agent.records import Approval, Deed, Mark, Memory, Place
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
