"""A scenario as values: steps at their times, each with at most one action."""

from typing import Any

from msgspec import Struct

from fairwarning.common.toml_table import BadFile, Mistake
from fairwarning.core.faults import FaultKind
from fairwarning.core.model import EventType, OperationKind

Json = dict[str, Any]


class Schedule(Struct, frozen=True, kw_only=True):
    """The platform announces an event."""

    type: EventType
    targets: tuple[str, ...]
    notice_ms: int | None = None
    duration_ms: int | None = None
    lasts_ms: int | None = None
    description: str | None = None
    already_happened: bool = False


class Operate(Struct, frozen=True, kw_only=True):
    """An owner asks for an operation on an instance."""

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
    """The other members of the API's request body, unchecked."""


class ClearFaults(Struct, frozen=True, kw_only=True):
    """Clear the faults that this scenario has set."""


class StartRollout(Struct, frozen=True, kw_only=True):
    type: EventType
    of: tuple[str, ...]
    """Names of instances; the rollout goes through their scopes."""
    more: Json = {}


class Expect(Struct, frozen=True, kw_only=True):
    """A condition that must hold, or the run fails."""

    name: str
    is_rollout: bool = False
    phases: tuple[str, ...] = ()
    approved: bool | str | None = None
    """Whether anybody has approved, or the instance that must have; None: either way."""
    within_ms: int = 0


Action = (
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
    """The time since the scenario began; never less than that of the step before."""
    line: int = 0
    say: str = ""
    name: str = ""
    """The name by which later steps mean the event or rollout that this step makes."""
    action: Action | None = None


class Scenario(Struct, frozen=True, kw_only=True):
    title: str
    description: str = ""
    fleet: Json | None = None
    """The content of a fleet file; None: the starter fleet is enough."""
    steps: tuple[Step, ...] = ()


class ScenarioProblem(BadFile):
    """A scenario or a recording cannot be read."""

    def __init__(self, *mistakes: Mistake) -> None:
        super().__init__(mistakes)
