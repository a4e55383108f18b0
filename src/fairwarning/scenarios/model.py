"""A scenario, as values: a story in steps, each at its time and with one deed at most."""

from typing import Any

from msgspec import Struct

from fairwarning.core.faults import FaultKind
from fairwarning.core.model import EventType, OperationKind

Json = dict[str, Any]


class Schedule(Struct, frozen=True, kw_only=True):
    """The platform announces something."""

    type: EventType
    targets: tuple[str, ...]
    notice_ms: int | None = None
    duration_ms: int | None = None
    lasts_ms: int | None = None
    description: str | None = None
    already_happened: bool = False


class Operate(Struct, frozen=True, kw_only=True):
    """An owner asks for something."""

    kind: OperationKind
    instance: str


class Approve(Struct, frozen=True, kw_only=True):
    event: str


class Cancel(Struct, frozen=True, kw_only=True):
    event: str
    reason: str = ""


class Postpone(Struct, frozen=True, kw_only=True):
    event: str
    notice_ms: int


class SetFault(Struct, frozen=True, kw_only=True):
    kind: FaultKind
    instances: tuple[str, ...] = ()
    more: Json = {}
    """The other members of the API's body, as they are."""


class ClearFaults(Struct, frozen=True, kw_only=True):
    """Those that this story has set."""


class StartRollout(Struct, frozen=True, kw_only=True):
    type: EventType
    of: tuple[str, ...]
    """Instances; the rollout goes through their scopes."""
    more: Json = {}


class Expect(Struct, frozen=True, kw_only=True):
    """What must be so, or the run fails."""

    name: str
    is_rollout: bool = False
    phases: tuple[str, ...] = ()
    approved: bool | str | None = None
    """By anybody, by nobody, or by this instance."""
    within_ms: int = 0


Deed = (
    Schedule
    | Operate
    | Approve
    | Cancel
    | Postpone
    | SetFault
    | ClearFaults
    | StartRollout
    | Expect
)


class Step(Struct, frozen=True, kw_only=True):
    at_ms: int
    """Since the story began; never less than that of the step before."""
    line: int = 0
    say: str = ""
    name: str = ""
    """What later steps call the event or rollout that this one makes."""
    deed: Deed | None = None


class Scenario(Struct, frozen=True, kw_only=True):
    title: str
    story: str = ""
    fleet: Json | None = None
    """In the form of a fleet file; None: it needs no more than the starter fleet."""
    steps: tuple[Step, ...] = ()


class ScenarioProblem(Exception):
    """A scenario cannot be read. It says where and what to do."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.message = message
        self.line = line
