"""From what the client has seen to what the agent remembers. Pure.

The records follow from `Seen` alone, not from single changes, so it does not matter at which
point between two of them an agent was killed: the next one comes to the same records.
"""

from dataclasses import replace
from datetime import datetime

from fairwarning.agent.model import Config, Phase
from fairwarning.agent.records import Approval, Memory, Record
from fairwarning.agent.rules import choose
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Instance, Status

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
