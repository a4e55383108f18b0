"""The body of a POST: which events are approved. JSON whatever its Content-Type says."""

import json
import re

from fairwarning.core.model import EventId
from fairwarning.metadata.limits import START_REQUESTS_MAX

_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def read_event_ids(body: bytes) -> tuple[EventId, ...] | None:
    """The ids in upper case, each once; None if the body is not what it must be.

    What is no id at all becomes the empty one, which no event has.

    DocumentIncarnation may stand beside StartRequests, as a string or a number; it is
    ignored, as Azure ignores it.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    requests = document.get("StartRequests") if isinstance(document, dict) else None
    if not isinstance(requests, list) or not 1 <= len(requests) <= START_REQUESTS_MAX:
        return None
    found: dict[EventId, None] = {}
    for request in requests:
        id = request.get("EventId") if isinstance(request, dict) else None
        if not isinstance(id, str):
            return None
        # Nothing else can be an id of ours, and nothing longer is repeated in an answer.
        found[EventId(id.strip().upper() if _GUID.fullmatch(id.strip()) else "")] = None
    return tuple(found)


def read_event_id(body: bytes) -> EventId | None:
    """The one id of `{"EventId": …}`, in upper case; None if the body is not that."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    id = document.get("EventId") if isinstance(document, dict) else None
    found = isinstance(id, str) and _GUID.fullmatch(id.strip())
    return EventId(found.group().upper()) if found else None
