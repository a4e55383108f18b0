"""Documents with something wrong in them, made from right ones. Pure."""

import json
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
            body["Events"] = [{**each, "NotBefore": _iso(each["NotBefore"])} for each in events]
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


def _iso(text: str) -> str:
    if not text:
        return text
    return parsedate_to_datetime(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
