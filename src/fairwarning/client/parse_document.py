"""The parser of documents and instance metadata. It accepts everything that it can understand.

Other versions of the service, and services of other makers, may add fields, types and date formats.
This must not hide an event from a handler. So an event is dropped only if it has no id, and any
other field that is missing or wrong gets a default.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from fairwarning.client.model import Document, Event, Instance, Status

_SLASHED = (
    "%m/%d/%Y %I:%M:%S %p %z", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S %z", "%m/%d/%Y %H:%M:%S",
)  # fmt: skip
"""The formats in which .NET writes a date by default."""
_YEARS = range(1970, 9000)
"""The years of a real date. .NET writes "no date" as the first or last day of its calendar."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class BadDocument(ValueError):
    """The bytes are not what the service should send. The message says why."""


# This is cached, because the same bytes may come for weeks.
@lru_cache(maxsize=2)
def read_document(body: bytes, *, version: str) -> Document:
    """Return the document in the body, which has the form of the api-version `version`.

    Raises BadDocument if the body is no JSON object with a list of events.
    """
    found = _object(body)
    events = found.get("Events")
    if not isinstance(events, list):
        raise BadDocument("the answer has no list of events")
    has_prefix = version == "2017-03-01"
    read = (_event(each, has_prefix=has_prefix) for each in events if isinstance(each, dict))
    by_id: dict[str, Event] = {}
    for event in read:
        if event is not None:
            by_id[event.id] = _later(by_id.get(event.id), event)
    return Document(incarnation=_whole(found.get("DocumentIncarnation")) or 0,
                    events=tuple(by_id.values()))  # fmt: skip


def read_date(text: object) -> datetime | None:
    """Return the date in a text of the format of RFC 1123, ISO 8601 or .NET, and else None."""
    if not isinstance(text, str) or not text.strip():
        return None
    text = text.strip()
    for read in (_http_date, parsedate_to_datetime, datetime.fromisoformat, _slashed):
        try:
            found = read(text)
            if found.tzinfo is not None:
                found = found.astimezone(UTC)
        except (ValueError, TypeError, OverflowError):
            continue
        return found.replace(tzinfo=UTC) if found.year in _YEARS else None
    return None


def read_instance(body: bytes) -> Instance:
    """Return the instance metadata in the body. Raises BadDocument if it has no VM name."""
    found = _object(body)
    compute = found.get("compute", found)
    if not isinstance(compute, dict) or not isinstance(compute.get("name"), str):
        raise BadDocument("the answer does not say what this VM is called")
    return Instance(
        name=compute["name"],
        resource_group=_text(compute.get("resourceGroupName")),
        subscription=_text(compute.get("subscriptionId")),
        location=_text(compute.get("location")),
        scale_set=_text(compute.get("vmScaleSetName")),
        update_domain=_text(compute.get("platformUpdateDomain")),
        fault_domain=_text(compute.get("platformFaultDomain")),
        tags=_tags(compute),
        raw=found,
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        what = "empty" if not body.strip() else f"not JSON ({problem})"
        raise BadDocument(f"the answer is {what}") from None
    if not isinstance(found, dict):
        raise BadDocument("the answer is no JSON object")
    return found


def _event(raw: Mapping[str, Any], *, has_prefix: bool) -> Event | None:
    id = _text(raw.get("EventId")).upper()
    if not id:
        return None
    resources = raw.get("Resources")
    names = [each for each in resources if isinstance(each, str)] if isinstance(
        resources, list) else []  # fmt: skip
    started = _text(raw.get("EventStatus")).lower() == "started"
    duration = _whole(raw.get("DurationInSeconds"))
    return Event(
        id=id,
        type=_text(raw.get("EventType")),
        status=Status.STARTED if started else Status.SCHEDULED,
        resources=tuple(each.removeprefix("_") if has_prefix else each for each in names),
        not_before=None if started else read_date(raw.get("NotBefore")),
        description=_text(raw.get("Description")),
        source=_text(raw.get("EventSource")),
        duration_s=None if duration is None or duration < 0 else duration,
    )


def _later(one: Event | None, other: Event) -> Event:
    """Return the later state of two events with the same id. Started is later than Scheduled."""
    return one if one is not None and one.status is Status.STARTED else other


def _http_date(text: str) -> datetime:
    """Read a date of the usual HTTP format. Raises ValueError for any other text.

    It is much faster than the standard library, and every response has such a date.
    """
    if len(text) != 29 or not text.endswith(" GMT") or text[8:11] not in _MONTHS:
        raise ValueError(text)
    month = _MONTHS.index(text[8:11]) + 1
    time = (int(text[17:19]), int(text[20:22]), int(text[23:25]))
    return datetime(int(text[12:16]), month, int(text[5:7]), *time, tzinfo=UTC)


def _slashed(text: str) -> datetime:
    for form in _SLASHED:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007  (UTC, if it does not say)
        except ValueError:
            continue
    raise ValueError(text)


def _tags(compute: Mapping[str, Any]) -> dict[str, str]:
    listed = compute.get("tagsList")
    if isinstance(listed, list):
        pairs = [each for each in listed if isinstance(each, dict)]
        return {_text(each.get("name")): _text(each.get("value")) for each in pairs}
    parts = (each.partition(":") for each in _text(compute.get("tags")).split(";") if each)
    return {name: value for name, _, value in parts}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        return int(value) if isinstance(value, str) else None
    except ValueError:
        return None
