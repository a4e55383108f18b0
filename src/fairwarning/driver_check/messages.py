"""These messages go between the check and its nodes. Each is a JSON object on one line."""

from enum import StrEnum

from msgspec import Struct

from fairwarning.engine.protocols import Found, Order


class When(StrEnum):
    """When a node dies in a gap: while the driver waits for something, or just after that."""

    WAITING = "waiting"
    RESUMED = "resumed"


class Gap(Struct, frozen=True, kw_only=True):
    """A place where the driver waits for something. They are counted from 1."""

    number: int
    when: When


class Call(Struct, frozen=True, kw_only=True):
    id: int
    order: Order
    is_find: bool = False
    dies_at: Gap | None = None


class Outcome(StrEnum):
    RETURNED = "returned"
    WAITS = "waits"
    """The driver waits for something for the first time. The call goes on."""
    FAILED = "failed"
    BROKE = "broke"
    CANCELLED = "cancelled"


class Reply(Struct, frozen=True, kw_only=True):
    id: int
    outcome: Outcome
    found: Found | None = None
    reason: str = ""
    gaps: int = 0
    """How often the driver waited for something."""


class Request(Struct, frozen=True, kw_only=True):
    """A call, or the cancellation of one that is under way."""

    call: Call | None = None
    cancel: int | None = None
