"""An operation of the API: what it takes, who may ask, and what it gives.

The table of operations is the one source of the routes and of the OpenAPI document.
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
    """One request, read and allowed."""

    caller: Caller
    path: Mapping[str, str]
    query: Q
    body: B
    why: str
    seed: str | None = None
    """The same for every try under one idempotency key; None: each request is new."""
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
    """With `{name}` for one segment, and `{name:path}` where the name may hold a slash."""
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
    """It changes nothing, so there is nothing to do only once."""
    is_in_steps: bool = False
    """It takes several transactions, so a try that broke off may have done some of them."""
    is_outward: bool = False
    """It does something outside of the store, of which nobody can say later whether it was done."""
    is_secret: bool = False
    """The answer holds what may be seen once, so it is never kept for a replay."""


@dataclass(frozen=True, slots=True)
class Document:
    """A body that is a fleet file: TOML, or the same structure in JSON. Nobody has read it yet."""

    body: bytes
    is_toml: bool
