"""What the check and its nodes say to each other: JSON, one object a line."""

from enum import StrEnum

from msgspec import Struct

from fairwarning.engine.protocols import Found, Order


class When(StrEnum):
    """At which side of a gap a node dies: the driver waits for something, or has just got it."""

    WAITING = "waiting"
    RESUMED = "resumed"


class Gap(Struct, frozen=True, kw_only=True):
    """A place where the driver gives control away, counted from 1."""

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
    """The driver has given control away for the first time. The call goes on."""
    FAILED = "failed"
    BROKE = "broke"
    CANCELLED = "cancelled"


class Reply(Struct, frozen=True, kw_only=True):
    id: int
    outcome: Outcome
    found: Found | None = None
    reason: str = ""
    gaps: int = 0
    """How often the driver gave control away."""


class Request(Struct, frozen=True, kw_only=True):
    """A call, or the cancellation of one that is under way."""

    call: Call | None = None
    cancel: int | None = None
