"""An event's story, from its journal, as steps of a timeline. Pure."""

from dataclasses import dataclass, replace

from fairwarning.control.shapes import Entry, Event

RENEWED = "LeaseRenewed"
_TONES = {
    "Scheduled": "wait",
    "Seen": "",
    "Drained": "good",
    "Approved": "good",
    "Started": "busy",
    "HandedOver": "busy",
    RENEWED: "busy",
    "AttemptLost": "bad",
    "AttemptFailed": "bad",
    "Completed": "good",
    "Cancelled": "",
    "Failed": "bad",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    kind: str
    tone: str
    at: str
    by: str
    """Empty: nobody, it was time."""
    why: str
    name: str = ""
    """The instance that saw it or is drained."""
    attempt: str = ""
    node: str = ""
    reason: str = ""
    cause: str = ""
    """Why it started."""
    repeats: int = 1
    until: str = ""
    """Of a step that repeated: when it last did."""


def steps(event: Event) -> list[Step]:
    """Oldest first. A lease that is renewed again and again is one step."""
    told: list[Step] = []
    for entry in event.timeline:
        if entry.kind not in _TONES:
            continue
        before = told[-1] if told else None
        if before is not None and before.kind == entry.kind == RENEWED:
            told[-1] = replace(before, repeats=before.repeats + 1, until=entry.at)
        else:
            told.append(_step(entry))
    return [_once(each, before) for each, before in zip(told, [None, *told], strict=False)]


def _once(step: Step, before: Step | None) -> Step:
    """What one commit did has one reason, which is said at its first step."""
    is_same = before is not None and (before.at, before.why) == (step.at, step.why)
    return replace(step, why="") if is_same else step


def _step(entry: Entry) -> Step:
    def said(key: str) -> str:
        return str(entry.data.get(key) or "")

    return Step(
        kind=entry.kind,
        tone=_TONES[entry.kind],
        at=entry.at,
        by=name_of(entry.by),
        why=entry.why,
        name=said("name"),
        attempt=said("attempt"),
        node=said("node"),
        reason=said("reason"),
        cause=said("cause"),
    )


def name_of(actor: str) -> str:
    """`local` for `operator:local`, and nobody where the engine did what time asked for."""
    kind, _, name = actor.partition(":")
    return "" if kind == "engine" else name or kind
