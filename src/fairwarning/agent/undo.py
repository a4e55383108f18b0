"""Decides which action of an event that is over is undone next, and when a failed undo is repeated.

This module is pure. `plan.py` asks it for the next undo, and `state_changes.py` stores its retry.
"""

from datetime import datetime, timedelta

from fairwarning.agent.config.model import Phase
from fairwarning.agent.records import HOLDS, Memory, Place, Record
from fairwarning.agent.steps import Release, Step, Undo

RETRY_S = 10.0
"""The first pause after a failed undo. It doubles with each failure."""
# A workload that is still drained must not wait longer for a repaired program.
RETRY_S_MAX = 300.0


def next_due(record: Record, at: datetime) -> Place | None:
    """Return the action to undo now, which is the last one that was begun and does not wait
    for a retry. It is None if there is none.

    A retry that is further away than the longest pause was set by a wrong clock, so it is due.
    """
    latest = at + timedelta(seconds=RETRY_S_MAX)
    for place in _owed(record):
        retry_at = record.action_states[place.slot].retry_at
        if retry_at is None or not at < retry_at <= latest:
            return place
    return None


def next_retry(record: Record) -> datetime | None:
    """Return when the first of the failed undos is tried again. It is None if none has failed."""
    times = (record.action_states[place.slot].retry_at for place in _owed(record))
    return min((each for each in times if each is not None), default=None)


def undo_step(memory: Memory, place: Place, claimed: set[str]) -> Step | None:
    """Return the step that undoes the action. If another event needs the same action, it is only
    released. If another step works on it (`claimed` has its key), there is no step yet.
    """
    key = memory.key(place)
    if key in claimed:
        return None
    if any(memory.holders(key, besides=place)):
        return Release(place=place)
    return Undo(place=place)


def retry_time(failures: int, at: datetime) -> datetime:
    """Return when an undo is tried again that fails at `at`, after so many failures before."""
    pause_s = min(RETRY_S_MAX, RETRY_S * 2 ** min(failures, 10))
    return at + timedelta(seconds=pause_s)


def _owed(record: Record) -> list[Place]:
    """Return the actions of this event that must still be undone, the last one first."""
    done = [*record.actions(Phase.SCHEDULED), *record.actions(Phase.STARTED)]
    return [
        place
        for place, action in reversed(done)
        if action.is_undoable and record.progress(place) in HOLDS
    ]
