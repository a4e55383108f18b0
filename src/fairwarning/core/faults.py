"""What an endpoint may be told to do wrong, so that handlers can be tested. Pure.

Each kind is something that real endpoints were seen to do, or that a handler must survive
because the protocol allows it. Chance comes in with the call, as time does.
"""

from enum import StrEnum

from msgspec import Struct

from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName

DELAY_MS_MAX = 120_000
COUNT_MAX = 1_000_000


class FaultKind(StrEnum):
    STATUS = "status"
    """An error instead of the answer: 410, 429, 500, 503."""
    EMPTY = "empty"
    """200 with an empty body, as seen where there are no events."""
    RESET = "reset"
    """The connection is cut instead of an answer."""
    SLOW = "slow"
    """The answer comes late."""
    SLOW_BODY = "slow-body"
    """The head comes at once and the body in small pieces."""
    ISO_DATES = "iso-dates"
    """NotBefore in ISO 8601, as some versions and pages had it."""
    DOTNET_DATES = "dotnet-dates"
    """NotBefore as .NET writes a date that nobody gave a form to."""
    UNKNOWN_TYPE = "unknown-type"
    """One more event, of a type that nobody has heard of."""
    UNKNOWN_FIELDS = "unknown-fields"
    """Fields that no version has, in the document and in each event."""
    INCARNATION_RESET = "incarnation-reset"
    """Counts from 1 again, as after a day of silence."""
    STALE = "stale"
    """The document as it was before the last change."""
    DUPLICATE = "duplicate"
    """Each event twice."""


class Part(StrEnum):
    """Which requests a fault is for."""

    POLL = "poll"
    APPROVE = "approve"
    INSTANCE = "instance"
    ANY = "any"


STATUSES = (410, 429, 500, 503)
DOCUMENT_KINDS = frozenset(
    {
        FaultKind.ISO_DATES,
        FaultKind.DOTNET_DATES,
        FaultKind.UNKNOWN_TYPE,
        FaultKind.UNKNOWN_FIELDS,
        FaultKind.INCARNATION_RESET,
        FaultKind.STALE,
        FaultKind.DUPLICATE,
    }
)
"""They change what a poll reads, and mean nothing to other requests."""


class Fault(Struct, frozen=True, kw_only=True):
    id: str
    kind: FaultKind
    instances: tuple[InstanceName, ...] = ()
    """Empty: every instance of a test fleet."""
    on: Part = Part.POLL
    count: int | None = None
    """So many requests more; None: no end."""
    probability: float = 1.0
    from_ms: Instant | None = None
    until_ms: Instant | None = None
    status: int = 503
    delay_ms: int = 5_000
    hits: int = 0
    """How often it has struck."""

    def is_over(self, now: Instant) -> bool:
        is_used_up = self.count is not None and self.hits >= self.count
        return is_used_up or (self.until_ms is not None and now >= self.until_ms)

    def strikes(self, name: InstanceName, part: Part, now: Instant, chance: float) -> bool:
        """`chance` is drawn evenly from 0 up to 1."""
        return (
            not self.is_over(now)
            and (self.from_ms is None or now >= self.from_ms)
            and (not self.instances or name in self.instances)
            and self.on in (part, Part.ANY)
            and (part is Part.POLL or self.kind not in DOCUMENT_KINDS)
            and chance < self.probability
        )
