"""A recording as a scenario: the same events, notices, starts and ends, at the same times. Pure."""

import re
from collections.abc import Iterator

from fairwarning.core.faults import STATUSES, FaultKind
from fairwarning.core.model import ANNOUNCED_TYPES, EventType
from fairwarning.scenarios.model import (
    Approve,
    Cancel,
    Deed,
    Json,
    Scenario,
    ScenarioProblem,
    Schedule,
    SetFault,
    Step,
)
from fairwarning.scenarios.recording import Fate, Outage, Recording, read_recording

_SECOND_MS = 1_000
_STATUS = re.compile(r"answered (\d{3})")


def read_playback(text: str) -> Scenario:
    """Raises ScenarioProblem."""
    recording = read_recording(text)
    names = _names(recording)
    if not recording.fates or not names:
        raise ScenarioProblem(
            "no event was seen in this recording, so there is nothing to play; record for longer"
        )
    steps = [step for fate in recording.fates for step in _steps(fate)]
    steps += [_outage(each, names) for each in recording.outages]
    steps.append(Step(at_ms=_whole(recording.ended_ms), say="The recording ends here."))
    return Scenario(
        title=f"Recorded at {recording.endpoint}",
        story=f"What {recording.instance or 'a VM'} read from {recording.began:%Y-%m-%d %H:%M} on.",
        fleet=_fleet(names),
        steps=tuple(sorted(steps, key=lambda each: each.at_ms)),
    )


def _names(recording: Recording) -> list[str]:
    """Who was affected, and who looked on."""
    found = dict.fromkeys(name for fate in recording.fates for name in fate.event.resources)
    if recording.instance:
        found[recording.instance] = None
    return [*found]


def _fleet(names: list[str]) -> Json:
    """One scope, because they saw one document; one update domain, so that nothing waits."""
    return {
        "test": True,
        "availability_set": [{"name": "recorded", "update_domains": 1, "instances": names}],
    }


def _steps(fate: Fate) -> Iterator[Step]:
    event, what = fate.event, f"{fate.event.type} of {', '.join(fate.event.resources)}"
    if event.type not in ANNOUNCED_TYPES:
        yield _step(fate.seen_ms, f"{what} was recorded, which this server cannot announce.")
        return
    happened = fate.notice_ms is None
    is_early = not happened and _starts_ms(fate) < _whole(fate.due_ms)
    said = f"{what} {'has started' if happened else 'is announced'}."
    yield _step(fate.seen_ms, said, _announcement(fate, EventType(event.type)), event.id)
    if is_early:
        yield _step(_starts_ms(fate), f"{what} starts early.", Approve(event=event.id))
    if _is_cancelled(fate):
        deed = Cancel(event=event.id, reason="as recorded")
        yield _step(fate.ended_ms or 0, f"{what} is called off.", deed)


def _announcement(fate: Fate, type: EventType) -> Schedule:
    event, happened = fate.event, fate.notice_ms is None
    ended_ms = None if fate.ended_ms is None else _whole(fate.ended_ms)
    return Schedule(
        type=type,
        targets=event.resources,
        notice_ms=None if happened else _whole(fate.due_ms) - _whole(fate.seen_ms),
        duration_ms=None if event.duration_s is None else event.duration_s * _SECOND_MS,
        lasts_ms=None if ended_ms is None else max(0, ended_ms - _starts_ms(fate)),
        description=event.description,
        already_happened=happened,
    )


def _starts_ms(fate: Fate) -> int:
    """At NotBefore, unless it was seen to have started before."""
    due_ms = _whole(fate.due_ms)
    return due_ms if fate.started_ms is None else min(due_ms, _whole(fate.started_ms))


def _is_cancelled(fate: Fate) -> bool:
    return fate.started_ms is None and fate.ended_ms is not None and fate.ended_ms < fate.due_ms


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
    deed = SetFault(kind=kind, instances=tuple(names), more=more)
    return _step(outage.from_ms, f"The endpoint fails: {outage.trouble}.", deed)


def _step(at_ms: int, say: str, deed: Deed | None = None, name: str = "") -> Step:
    return Step(at_ms=_whole(at_ms), say=say, deed=deed, name=name)


def _whole(at_ms: int) -> int:
    """A clock is moved by whole seconds."""
    return at_ms // _SECOND_MS * _SECOND_MS
