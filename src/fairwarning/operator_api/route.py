"""Describes a route of the operator API: what it takes, who may call it, and what it answers.

The HTTP routes and the OpenAPI document are both made from the table of all `Route` objects.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fairwarning.core.model import Actor
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.schemas import In, NoQuery, Out
from fairwarning.operator_api.spooled_bodies import SpooledBody

Q = TypeVar("Q", bound=In)
B = TypeVar("B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Q, B]):
    """One request that was parsed and whose caller has the needed role."""

    caller: Caller
    path: Mapping[str, str]
    query: Q
    body: B
    why: str
    seed: str | None = None
    """The seed of new ids: the same for every try with one idempotency key, None without a key."""
    was_done: bool = False
    """If true, an earlier try has stored the change: only return its result, change nothing."""

    @property
    def by(self) -> Actor:
        return self.caller.actor


Handler = Callable[[Control, Call[Any, Any]], Awaitable[Out]]
StreamHandler = Callable[[Control, Call[Any, SpooledBody]], AsyncGenerator[Out, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    """The path, with `{name}` for one segment and `{name:path}` if the value may hold slashes."""
    summary: str
    role: Role
    handle: Handler
    answer: type[Out]
    query: type[In] = NoQuery
    body: type[Any] | None = None
    is_body_optional: bool = False
    takes_toml: bool = False
    """Whether the body may be a fleet file in TOML. The handler gets the body as `Document`."""
    stream: StreamHandler | None = None
    """The handler for callers that accept an answer of many lines. Its body may be large."""
    status: int = 200
    is_preview: bool = False
    """Whether the route changes nothing, and so ignores idempotency keys."""
    is_in_steps: bool = False
    """Whether the route takes several transactions, so that a failed try may have done some."""
    is_outward: bool = False
    """Whether the route acts outside of the store, which does not know later if it has acted."""
    is_secret: bool = False
    """Whether the answer holds a secret. Such an answer is never stored for a repeated request."""


@dataclass(frozen=True, slots=True)
class Document:
    """A fleet file as the body of a request, not parsed yet, in TOML or JSON."""

    body: bytes
    is_toml: bool
