"""One request to ARM, read and allowed, and its answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairwarning.azure_api.paths import ResourcePath
from fairwarning.core.model import Actor
from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.context import Control

if TYPE_CHECKING:
    from fairwarning.azure_api.operations import Operation, Operations
    from fairwarning.azure_api.resource_store import Shelf

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCall:
    method: str
    path: ResourcePath
    query: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: Json | None = None
    template: bytes = b""
    """The body of a deployment, unread: reading it may take long."""
    caller: Caller
    base_url: str
    """As the client wrote it, `https://localhost:8171`: it must find its operations there."""
    why: str = ""

    @property
    def api_version(self) -> str:
        return self.query.get("api-version", "")

    @property
    def by(self) -> Actor:
        return self.caller.actor


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: object = None
    """JSON; None: an empty body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    operation: "Operation | None" = None
    """The long-running operation that the request began, for callers inside the server."""


Handler = Callable[["Arm", ArmCall], Awaitable[Reply]]
Routes = Mapping[tuple[str, str, str], Handler]
"""By method, type in lower case (`microsoft.compute/virtualmachines`) and tail.

A type that ends in `/*` takes all types of its namespace that have no route of their own.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What the handlers work with."""

    control: Control
    shelf: "Shelf"
    operations: "Operations"
    answer: Callable[[ArmCall], Awaitable[Reply]]
    """Another request on behalf of the same caller: a deployment makes its resources so."""
