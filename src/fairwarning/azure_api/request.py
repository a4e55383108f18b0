"""Defines a request to ARM after it was read and authorized, its reply, and a handler's tools."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairwarning.azure_api.paths import ResourcePath
from fairwarning.core.model import Actor
from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.context import Control

if TYPE_CHECKING:
    from fairwarning.azure_api.operations import Operation, Operations
    from fairwarning.azure_api.resource_store import ResourceStore

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCall:
    method: str
    path: ResourcePath
    query: Mapping[str, str] = field(default_factory=dict)
    """The query parameters; their names are in lower case."""
    body: Json | None = None
    template: bytes = b""
    """The body of a deployment, still unparsed: parsing it may take long."""
    caller: Caller
    base_url: str
    """The server's URL as the client wrote it, `https://localhost:8171`: links in replies, such as
    that of an operation, must lead there."""
    why: str = ""
    """The reason for the journal: the command that the client names in its header."""

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
    """A value to encode as JSON; None for an empty body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    operation: "Operation | None" = None
    """The long-running operation that the request began, for callers inside the server."""


Handler = Callable[["Arm", ArmCall], Awaitable[Reply]]
Routes = Mapping[tuple[str, str, str], Handler]
"""Handlers by method, type in lower case (`microsoft.compute/virtualmachines`) and path tail.

A type that ends in `/*` stands for all types of its namespace that have no route of their own.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The services that handlers work with."""

    control: Control
    resources: "ResourceStore"
    operations: "Operations"
    answer: Callable[[ArmCall], Awaitable[Reply]]
    """Answers another request for the same caller; a deployment creates its resources with it."""
