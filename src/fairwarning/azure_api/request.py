"""Defines an authorized request to ARM, its reply, and the services that handlers use."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
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
    """The query parameters. Their names are in lower case."""
    body: Json | None = None
    template: bytes = b""
    """The body of a deployment. It is not parsed yet, because parsing may take long."""
    caller: Caller
    base_url: str
    """The URL at which the client reaches the server, such as `https://localhost:8171`.

    Links in replies, such as the link to an operation, start with it.
    """
    if_match: str = ""
    """The value of the header If-Match. It is empty if there is none."""
    if_none_match: str = ""
    why: str = ""
    """The reason that the journal shows. It is the command that the client names in a header."""

    @property
    def api_version(self) -> str:
        return self.query.get("api-version", "")

    @property
    def by(self) -> Actor:
        return self.caller.actor

    def without_conditions(self) -> "ArmCall":
        """Returns the call without If-Match and If-None-Match, for use on another resource."""
        return replace(self, if_match="", if_none_match="")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: object = None
    """The value to encode as JSON. If it is None, the body is empty."""
    headers: Mapping[str, str] = field(default_factory=dict)
    operation: "Operation | None" = None
    """The long-running operation that the request began. Only callers inside the server use it."""


Handler = Callable[["Arm", ArmCall], Awaitable[Reply]]
Routes = Mapping[tuple[str, str, str], Handler]
"""Handlers by method, type in lower case (`microsoft.compute/virtualmachines`) and path tail.

A type that ends in `/*` means all types of its namespace that have no route of their own.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The services that handlers use."""

    control: Control
    resources: "ResourceStore"
    operations: "Operations"
    answer: Callable[[ArmCall], Awaitable[Reply]]
    """Answers an internal request. A deployment creates its resources with such requests."""
