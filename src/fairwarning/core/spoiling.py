"""Documents with something wrong in them, made from right ones. Pure."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from fairwarning.core.faults import FaultKind

UNKNOWN_TYPE = "HostDefragmentation"
UNKNOWN_EVENT_ID = "00000000-0000-4000-8000-00000000FADE"
UNKNOWN_FIELD = "FairwarningUnknownField"


def spoilt(document: bytes, kind: FaultKind, *, instance: str) -> bytes:
    """`instance` is who asks; an event that is made up concerns it."""
    body: dict[str, Any] = json.loads(document)
    events: list[dict[str, Any]] = body["Events"]
    match kind:
        case FaultKind.ISO_DATES:
            body["Events"] = _dated(events, lambda when: f"{when:%Y-%m-%dT%H:%M:%SZ}")
        case FaultKind.DOTNET_DATES:
            body["Events"] = _dated(events, _dotnet)
        case FaultKind.UNKNOWN_TYPE:
            body["Events"] = [*events, _unknown(instance)]
        case FaultKind.UNKNOWN_FIELDS:
            extra = {UNKNOWN_FIELD: {"since": "tomorrow"}}
            body = {**body, **extra, "Events": [{**each, **extra} for each in events]}
        case FaultKind.INCARNATION_RESET:
            body["DocumentIncarnation"] = 1
        case FaultKind.DUPLICATE:
            body["Events"] = [each for each in events for _ in range(2)]
        case _:
            raise AssertionError(f"{kind} is not about the document")
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _dated(events: list[dict[str, Any]], write: Callable[[datetime], str]) -> list[dict[str, Any]]:
    """A date that is empty stays so."""
    return [
        {**each, "NotBefore": write(parsedate_to_datetime(each["NotBefore"]).astimezone(UTC))}
        if each["NotBefore"]
        else each
        for each in events
    ]


def _dotnet(when: datetime) -> str:
    """`4/11/2022 10:26:58 PM +00:00`: nothing is padded but minutes and seconds."""
    hour = when.hour % 12 or 12
    half = "AM" if when.hour < 12 else "PM"
    return f"{when.month}/{when.day}/{when.year} {hour}:{when:%M:%S} {half} +00:00"


def _unknown(instance: str) -> dict[str, Any]:
    return {
        "EventId": UNKNOWN_EVENT_ID,
        "EventStatus": "Scheduled",
        "EventType": UNKNOWN_TYPE,
        "ResourceType": "VirtualMachine",
        "Resources": [instance],
        "NotBefore": _rfc1123(datetime(2099, 1, 1, tzinfo=UTC)),
    }


def _rfc1123(when: datetime) -> str:
    return when.strftime("%a, %d %b %Y %H:%M:%S GMT")
