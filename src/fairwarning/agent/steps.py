"""What the agent can do next, as values; `plan` chooses, `runner` carries out."""

from dataclasses import dataclass
from datetime import datetime

from fairwarning.agent.model import Hold
from fairwarning.agent.records import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    place: Place
    ends_at: datetime | None = None
    """When it is cut off; None: only its own timeout counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Another event has had it done already, and it has not been undone."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Another event still needs it, and will have it undone."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    place: Place
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """Ends what is being done for the event."""

    place: Place
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Tells the other VMs of the event that this one is ready."""

    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPeers:
    """Which of the others are not ready."""

    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckHold:
    event_id: str
    hold: Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Nobody needs the answer any more, so nobody waits for its end either."""

    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing to do for the event before then."""

    event_id: str
    until: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    event_id: str


Noted = Adopt | Release | Skip | Forget
"""Done by writing it down."""
Work = Do | Undo | Report | AskPeers | CheckHold | Approve
"""Takes time and may fail; at most one at a time for each event."""
Step = Noted | Work | CutOff | Drop | Wait


def event_of(step: Step) -> str:
    if isinstance(step, Do | Undo | Adopt | Release | Skip | CutOff):
        return step.place.event_id
    return step.event_id
