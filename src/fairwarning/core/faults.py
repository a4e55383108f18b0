"""A fault is an error that an endpoint makes on purpose, so that handlers can be tested.

Each kind was seen at real endpoints, or is allowed by the protocol, so that a handler must survive
it. The caller passes in the time and the random numbers.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from fairwarning.core.api_versions import ApiVersion
from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName

DELAY_MS_MAX = 120_000  # Real endpoints may need two minutes for a first answer.
COUNT_MAX = 1_000_000  # More than any test sends; it only keeps the number small.
UNKNOWN_TYPE = "HostDefragmentation"


class FaultKind(StrEnum):
    STATUS = "status"
    """An HTTP error instead of the answer: 410, 429, 500 or 503."""
    EMPTY = "empty"
    """Status 200 with an empty body, as real endpoints were seen to send without events."""
    RESET = "reset"
    """The connection is closed without an answer."""
    SLOW = "slow"
    """The answer comes late."""
    SLOW_BODY = "slow-body"
    """The headers come at once, and the body in small pieces."""
    ISO_DATES = "iso-dates"
    """NotBefore is in ISO 8601, as in some versions and documentation pages."""
    DOTNET_DATES = "dotnet-dates"
    """NotBefore is in the default format of .NET."""
    UNKNOWN_TYPE = "unknown-type"
    """The document has one more event, of an unknown type."""
    UNKNOWN_FIELDS = "unknown-fields"
    """The document and each event have fields that no version has."""
    INCARNATION_RESET = "incarnation-reset"
    """The incarnation is 1 again, as after a day without requests."""
    STALE = "stale"
    """The document is the one from before the last change."""
    DUPLICATE = "duplicate"
    """Each event is in the document twice."""
    FEWER_RESOURCES = "fewer-resources"
    """Events of the caller and of others name only the caller, in a newer document."""


class Part(StrEnum):
    """The part of the endpoint whose requests a fault strikes."""

    POLL = "poll"
    APPROVE = "approve"
    INSTANCE = "instance"
    ANY = "any"


STATUSES = (410, 429, 500, 503)  # The errors that a real endpoint may answer with.
DOCUMENT_KINDS = frozenset(
    {
        FaultKind.ISO_DATES,
        FaultKind.DOTNET_DATES,
        FaultKind.UNKNOWN_TYPE,
        FaultKind.UNKNOWN_FIELDS,
        FaultKind.INCARNATION_RESET,
        FaultKind.STALE,
        FaultKind.DUPLICATE,
        FaultKind.FEWER_RESOURCES,
    }
)
"""The kinds that change the document. They apply to polls only."""


class Fault(Struct, frozen=True, kw_only=True):
    id: str
    kind: FaultKind
    instances: tuple[InstanceName, ...] = ()
    """The instances whose requests the fault strikes. Empty means all instances of test fleets."""
    on: Part = Part.POLL
    count: int | None = None
    """The number of requests that the fault strikes. None means until it is cleared."""
    probability: float = 1.0
    from_ms: Instant | None = None
    until_ms: Instant | None = None
    status: int = 503
    delay_ms: int = 5_000
    hits: int = 0
    """How many requests the fault has struck so far."""

    def is_over(self, now: Instant) -> bool:
        is_used_up = self.count is not None and self.hits >= self.count
        return is_used_up or (self.until_ms is not None and now >= self.until_ms)

    def strikes(self, name: InstanceName, part: Part, now: Instant, chance: float) -> bool:
        """Return whether the fault strikes this request. `chance` is random, from 0 up to 1."""
        return (
            not self.is_over(now)
            and (self.from_ms is None or now >= self.from_ms)
            and (not self.instances or name in self.instances)
            and self.on in (part, Part.ANY)
            and (part is Part.POLL or self.kind not in DOCUMENT_KINDS)
            and chance < self.probability
        )


UNKNOWN_EVENT_ID = "00000000-0000-4000-8000-00000000FADE"
UNKNOWN_FIELD = "FairwarningUnknownField"


def broken_document(
    document: bytes, kind: FaultKind, *, instance: str, version: ApiVersion
) -> bytes:
    """Return the document of this version with this fault in it. `instance` is the caller."""
    body: dict[str, Any] = json.loads(document)
    events: list[dict[str, Any]] = body["Events"]
    match kind:
        case FaultKind.ISO_DATES:
            body["Events"] = _dated(events, lambda when: f"{when:%Y-%m-%dT%H:%M:%SZ}")
        case FaultKind.DOTNET_DATES:
            body["Events"] = _dated(events, _dotnet)
        case FaultKind.UNKNOWN_TYPE:
            body["Events"] = [*events, _unknown(instance, version)]
        case FaultKind.UNKNOWN_FIELDS:
            extra = {UNKNOWN_FIELD: {"since": "tomorrow"}}
            body = {**body, **extra, "Events": [{**each, **extra} for each in events]}
        case FaultKind.INCARNATION_RESET:
            body["DocumentIncarnation"] = 1
        case FaultKind.DUPLICATE:
            body["Events"] = [each for each in events for _ in range(2)]
        case FaultKind.FEWER_RESOURCES:
            # An unchanged incarnation would promise unchanged events.
            body["DocumentIncarnation"] += 1
            body["Events"] = [_only_for(instance, each) for each in events]
        case _:
            raise AssertionError(f"{kind} is not about the document")
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _dated(events: list[dict[str, Any]], write: Callable[[datetime], str]) -> list[dict[str, Any]]:
    """Return the events with each NotBefore formatted by `write`, unless it is empty."""
    return [
        {**each, "NotBefore": write(parsedate_to_datetime(each["NotBefore"]).astimezone(UTC))}
        if each["NotBefore"]
        else each
        for each in events
    ]


def _dotnet(when: datetime) -> str:
    """Return the time like `4/11/2022 10:26:58 PM +00:00`. Only minutes and seconds are padded."""
    hour = when.hour % 12 or 12
    half = "AM" if when.hour < 12 else "PM"
    return f"{when.month}/{when.day}/{when.year} {hour}:{when:%M:%S} {half} +00:00"


def _only_for(instance: str, event: dict[str, Any]) -> dict[str, Any]:
    # The oldest version writes names of VMs with an underscore.
    own = [each for each in event["Resources"] if each in (instance, f"_{instance}")]
    return {**event, "Resources": own} if own else event


def _unknown(instance: str, version: ApiVersion) -> dict[str, Any]:
    """Return an event of an unknown type. It has all fields that events of the version have."""
    event: dict[str, Any] = {
        "EventId": UNKNOWN_EVENT_ID,
        "EventStatus": "Scheduled",
        "EventType": UNKNOWN_TYPE,
        "ResourceType": "VirtualMachine",
        "Resources": [f"_{instance}" if version.prefixes_underscore else instance],
        "NotBefore": "Thu, 01 Jan 2099 00:00:00 GMT",
    }
    if version.has_description:
        event["Description"] = "Memory of the host is being defragmented."
    if version.has_source:
        event["EventSource"] = "Platform"
    if version.has_duration:
        event["DurationInSeconds"] = -1
    return event
