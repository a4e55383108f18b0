"""The model of a scenario, and the part of the operator API that playing it needs.

Each step of a scenario has a time and at most one action.
"""

from datetime import UTC, datetime
from typing import Any, Protocol

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
    """The owner of an instance requests an operation on it."""

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
    """The other members of the API's request body. The server checks them."""


class ClearFaults(Struct, frozen=True, kw_only=True):
    """Clear the faults that this scenario has set."""


class StartRollout(Struct, frozen=True, kw_only=True):
    type: EventType
    of: tuple[str, ...]
    """The names of instances. The rollout goes through the scopes of these instances."""
    more: Json = {}


class Expect(Struct, frozen=True, kw_only=True):
    """A condition on an event or a rollout. The run fails if it does not become true in time."""

    name: str
    is_rollout: bool = False
    phases: tuple[str, ...] = ()
    approved: bool | str | None = None
    """Whether there must be an approval, or the instance it must be from. None means any."""
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
    """The time since the scenario began. It is not before the time of the previous step."""
    line: int = 0
    say: str = ""
    name: str = ""
    """The name that later steps use for the event or rollout of this step."""
    action: Action | None = None


class Scenario(Struct, frozen=True, kw_only=True):
    title: str
    description: str = ""
    fleet: Json | None = None
    """The content of a fleet file. None means the starter fleet."""
    steps: tuple[Step, ...] = ()


class ScenarioProblem(BadFile):
    """A scenario or a recording cannot be read."""

    def __init__(self, *mistakes: Mistake) -> None:
        super().__init__(mistakes)


class RequestRefused(Exception):
    """The server refused, or did not answer. The message says what to do."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class OperatorApi(Protocol):
    """Sends requests. Each method raises `RequestRefused` if the request fails."""

    def get(self, *path: str, **params: Any) -> Json: ...

    def post(self, *path: str, body: Json | None = None) -> Json: ...

    def delete(self, *path: str) -> Json: ...


def instant(text: str) -> datetime:
    """Convert a time in the form of the API to a datetime in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)
