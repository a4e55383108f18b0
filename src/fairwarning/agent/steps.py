"""The steps that the agent can take. `plan` chooses the steps, and `runner` starts them."""

from dataclasses import dataclass
from datetime import datetime

from fairwarning.agent.config.model import Hold
from fairwarning.agent.records import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    place: Place
    ends_at: datetime | None = None
    """When the action is cut off. None means that only its own timeout counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Counts an action as done, because it was done for another event and not undone."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Counts an action as undone, because another event needs it and will undo it."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    place: Place
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """Ends the running action of an event before it is done."""

    place: Place
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Tells the other VMs of the event that this one is ready."""

    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPeers:
    """Asks which VMs of the event are not ready."""

    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckHold:
    event_id: str
    hold: Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Cancels a running step that is no longer needed, without waiting for its end."""

    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Says that there is nothing to do for the event before `until`."""

    event_id: str
    until: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    event_id: str


StateStep = Adopt | Release | Skip | Forget
"""Steps that only change the stored state."""
Work = Do | Undo | Report | AskPeers | CheckHold | Approve
"""Steps that take time and may fail. At most one runs at a time for each event."""
Step = StateStep | Work | CutOff | Drop | Wait


def event_of(step: Step) -> str:
    if isinstance(step, Do | Undo | Adopt | Release | Skip | CutOff):
        return step.place.event_id
    return step.event_id
