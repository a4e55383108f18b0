"""Describes a route of the operator API: what it takes, who may call it, and what it answers.

The HTTP routes and the OpenAPI document are both made from the table of these.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fairwarning.core.model import Actor
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.schemas import In, NoQuery, Out

Q = TypeVar("Q", bound=In)
B = TypeVar("B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Q, B]):
    """One request, parsed and allowed."""

    caller: Caller
    path: Mapping[str, str]
    query: Q
    body: B
    why: str
    seed: str | None = None
    """It is the same for every try under one idempotency key; None without a key."""
    was_done: bool = False
    """An earlier try under this key has stored its change: say what it was, and change nothing."""

    @property
    def by(self) -> Actor:
        return self.caller.actor


Handler = Callable[[Control, Call[Any, Any]], Awaitable[Out]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    """It has `{name}` for one segment, and `{name:path}` where the name may hold a slash."""
    summary: str
    role: Role
    handle: Handler
    answer: type[Out]
    query: type[In] = NoQuery
    body: type[Any] | None = None
    is_body_optional: bool = False
    takes_toml: bool = False
    """The body may also be a fleet file; the handler gets it as `Document`."""
    status: int = 200
    is_preview: bool = False
    """It changes nothing, so it ignores idempotency keys."""
    is_in_steps: bool = False
    """It takes several transactions, so a try that broke off may have done some of them."""
    is_outward: bool = False
    """It acts outside of the store, so nobody can say later whether it was done."""
    is_secret: bool = False
    """The answer holds a secret that is shown once, so it is never stored for a replay."""


@dataclass(frozen=True, slots=True)
class Document:
    """A body that is a fleet file, not parsed yet: TOML, or the same structure in JSON."""

    body: bytes
    is_toml: bool
