"""Turns a recording into a scenario with the same events and outages at the same times."""

import re
from collections.abc import Iterator

from fairwarning.common.toml_table import Mistake
from fairwarning.core.faults import STATUSES, FaultKind
from fairwarning.core.model import ANNOUNCED_TYPES, EventType
from fairwarning.scenarios.model import (
    Action,
    Approve,
    Cancel,
    Json,
    Scenario,
    ScenarioProblem,
    Schedule,
    SetFault,
    Step,
)
from fairwarning.scenarios.read_recording import Outage, RecordedEvent, Recording, read_recording

_SECOND_MS = 1_000
_STATUS = re.compile(r"answered (\d{3})")


def read_playback(text: str) -> Scenario:
    """Read a recording as a scenario. Raises `ScenarioProblem` if it is bad or has no event."""
    recording = read_recording(text)
    names = _names(recording)
    if not recording.events or not names:
        message = (
            "no event was seen in this recording, so there is nothing to play; record for longer"
        )
        raise ScenarioProblem(Mistake(line=None, message=message))
    steps = [step for recorded in recording.events for step in _steps(recorded)]
    steps += [_outage(each, names) for each in recording.outages]
    steps.append(Step(at_ms=_whole(recording.ended_ms), say="The recording ends here."))
    reader = recording.instance or "a VM"
    return Scenario(
        title=f"Recorded at {recording.endpoint}",
        description=f"What {reader} read from {recording.began:%Y-%m-%d %H:%M} on.",
        fleet=_fleet(names),
        steps=tuple(sorted(steps, key=lambda each: each.at_ms)),
    )


def _names(recording: Recording) -> list[str]:
    """Return the instances that events affected, and the one that made the recording."""
    found = dict.fromkeys(
        name for recorded in recording.events for name in recorded.event.resources
    )
    if recording.instance:
        found[recording.instance] = None
    return [*found]


def _fleet(names: list[str]) -> Json:
    """Return a fleet with one scope, because all instances saw the same document.

    It has one update domain, so that no event waits for another.
    """
    return {
        "test": True,
        "availability_set": [{"name": "recorded", "update_domains": 1, "instances": names}],
    }


def _steps(recorded: RecordedEvent) -> Iterator[Step]:
    event, what = recorded.event, f"{recorded.event.type} of {', '.join(recorded.event.resources)}"
    if event.type not in ANNOUNCED_TYPES:
        yield _step(recorded.seen_ms, f"{what} was recorded, which this server cannot announce.")
        return
    happened = recorded.notice_ms is None
    is_early = not happened and _starts_ms(recorded) < _whole(recorded.due_ms)
    said = f"{what} {'has started' if happened else 'is announced'}."
    yield _step(recorded.seen_ms, said, _announcement(recorded, EventType(event.type)), event.id)
    if is_early:
        yield _step(_starts_ms(recorded), f"{what} starts early.", Approve(event=event.id))
    if _is_cancelled(recorded):
        action = Cancel(event=event.id, reason="as recorded")
        yield _step(recorded.ended_ms or 0, f"{what} is called off.", action)


def _announcement(recorded: RecordedEvent, type: EventType) -> Schedule:
    event, happened = recorded.event, recorded.notice_ms is None
    ended_ms = None if recorded.ended_ms is None else _whole(recorded.ended_ms)
    return Schedule(
        type=type,
        targets=event.resources,
        notice_ms=None if happened else _whole(recorded.due_ms) - _whole(recorded.seen_ms),
        duration_ms=None if event.duration_s is None else event.duration_s * _SECOND_MS,
        lasts_ms=None if ended_ms is None else max(0, ended_ms - _starts_ms(recorded)),
        description=event.description,
        already_happened=happened,
    )


def _starts_ms(recorded: RecordedEvent) -> int:
    """Return when the event started, which is NotBefore or earlier if it was seen as Started."""
    due_ms = _whole(recorded.due_ms)
    return due_ms if recorded.started_ms is None else min(due_ms, _whole(recorded.started_ms))


def _is_cancelled(recorded: RecordedEvent) -> bool:
    return (
        recorded.started_ms is None
        and recorded.ended_ms is not None
        and recorded.ended_ms < recorded.due_ms
    )


def _outage(outage: Outage, names: list[str]) -> Step:
    lasts_s = max(1, (outage.until_ms - outage.from_ms) // _SECOND_MS)
    status = _STATUS.search(outage.trouble)
    more: Json = {"for": f"PT{lasts_s}S"}
    kind = FaultKind.RESET
    if status is not None:
        kind = FaultKind.STATUS
        more["status"] = int(status[1]) if int(status[1]) in STATUSES else 503
    elif outage.trouble.endswith("empty"):
        kind = FaultKind.EMPTY
    action = SetFault(kind=kind, instances=tuple(names), more=more)
    return _step(outage.from_ms, f"The endpoint fails: {outage.trouble}.", action)


def _step(at_ms: int, say: str, action: Action | None = None, name: str = "") -> Step:
    return Step(at_ms=_whole(at_ms), say=say, action=action, name=name)


def _whole(at_ms: int) -> int:
    """Round down to whole seconds, because the clock moves by whole seconds."""
    return at_ms // _SECOND_MS * _SECOND_MS
