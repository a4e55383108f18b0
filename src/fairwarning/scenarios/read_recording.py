"""Reads from a recording what happened to each event, and when the endpoint failed."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from fairwarning.client.model import Document, Event, Status
from fairwarning.client.parse_document import BadDocument, read_document
from fairwarning.common.toml_table import Mistake
from fairwarning.scenarios.model import ScenarioProblem


class RecordedEvent(Struct, frozen=True, kw_only=True):
    """An event and its times, in milliseconds of the service's clock since the beginning."""

    event: Event
    """The event as the first document showed it."""
    seen_ms: int
    notice_ms: int | None
    """The time from the first sight to NotBefore. It is None if the event had started by then."""
    started_ms: int | None = None
    ended_ms: int | None = None

    @property
    def due_ms(self) -> int:
        return self.seen_ms + (self.notice_ms or 0)


class Outage(Struct, frozen=True, kw_only=True):
    trouble: str
    from_ms: int
    until_ms: int


class Recording(Struct, frozen=True, kw_only=True):
    endpoint: str
    began: datetime
    instance: str | None
    events: tuple[RecordedEvent, ...]
    outages: tuple[Outage, ...]
    ended_ms: int


def read_recording(text: str) -> Recording:
    """Read the text of a recording. Raises `ScenarioProblem` for any other text."""
    lines = read_lines(text)
    if not lines or lines[0][0].kind != "begin":
        message = "a recording begins with the line `begin`; this is none"
        raise ScenarioProblem(Mistake(line=1, message=message))
    first = lines[0][0]
    events: dict[str, RecordedEvent] = {}
    outages: list[Outage] = []
    out: tuple[str, int] | None = None
    at_ms = 0
    for line, at_ms in lines:
        if line.kind == "document":
            _take(events, _document(line), line, at_ms)
        elif line.kind == "outage":
            out = (line.trouble, at_ms)
        elif out is not None:
            outages.append(Outage(trouble=out[0], from_ms=out[1], until_ms=at_ms))
            out = None
    return Recording(
        endpoint=first.endpoint,
        began=first.date or first.at,
        instance=first.instance,
        events=tuple(events.values()),
        outages=tuple(outages),
        ended_ms=at_ms,
    )


_SECOND_MS = 1_000
_S_MAX = 1e10
"""The largest `s`, about 300 years, so that arithmetic cannot overflow."""


class Line(Struct, kw_only=True):
    """A line as the recorder writes it. Unknown fields are ignored."""

    kind: str
    at: datetime
    s: Annotated[float, Meta(ge=0, le=_S_MAX)]
    endpoint: str = ""
    instance: str | None = None
    version: str = ""
    date: datetime | None = None
    """The time by the service's clock. It is None if the service did not answer."""
    document: dict[str, Any] = {}
    trouble: str = ""


def _document(line: Line) -> Document:
    try:
        return read_document(json.dumps(line.document).encode(), version=line.version)
    except BadDocument as problem:
        message = f"{problem}; this recording is damaged"
        raise ScenarioProblem(Mistake(line=None, message=message)) from None


def _take(events: dict[str, RecordedEvent], document: Document, line: Line, at_ms: int) -> None:
    shown = {each.id: each for each in document.events}
    for id, event in shown.items():
        recorded = events.get(id)
        if recorded is None:
            events[id] = _first(event, line, at_ms)
        elif event.status is Status.STARTED and recorded.started_ms is None:
            events[id] = replace(recorded, started_ms=at_ms)
    for id, recorded in events.items():
        if id not in shown and recorded.ended_ms is None:
            events[id] = replace(recorded, ended_ms=at_ms)


def _first(event: Event, line: Line, at_ms: int) -> RecordedEvent:
    if event.status is Status.STARTED or event.not_before is None:
        return RecordedEvent(event=event, seen_ms=at_ms, notice_ms=None, started_ms=at_ms)
    now = line.date or line.at
    notice_ms = max(0, (event.not_before - now) // timedelta(milliseconds=1))
    return RecordedEvent(event=event, seen_ms=at_ms, notice_ms=notice_ms)


def read_lines(text: str) -> list[tuple[Line, int]]:
    """Return each line with its milliseconds since the recording began.

    Raises `ScenarioProblem` if a line is bad. A bad last line is ignored.
    """
    lines = [*_lines(text)]
    return [*zip(lines, _offsets_ms(lines), strict=True)]


def _lines(text: str) -> Iterator[Line]:
    texts = text.splitlines()
    for number, each in enumerate(texts, start=1):
        try:
            yield _in_utc(msgspec.json.decode(each, type=Line))
        except (msgspec.DecodeError, RecursionError, OverflowError):
            if number == len(texts) and number > 1:
                return  # The last line may be cut off, as by a power failure.
            message = "this is no line of a recording; make one with `fairwarning record`"
            raise ScenarioProblem(Mistake(line=number, message=message)) from None


def _offsets_ms(lines: Sequence[Line]) -> list[int]:
    """Return the time of each line, by the service's clock or else by the recorder's."""
    found: list[int] = []
    dated: tuple[datetime, int] | None = None
    """The last date that the service gave, and its offset."""
    real_ms = 0
    """Milliseconds since the date in `dated`, by the recorder's clock."""
    for number, line in enumerate(lines):
        real_ms += _apart_ms(lines[number - 1], line) if number else 0
        if dated is None or line.date is None:
            at_ms = real_ms if dated is None else dated[1] + real_ms
        else:
            step_ms = (line.date - dated[0]) // timedelta(milliseconds=1)
            at_ms = dated[1] + (step_ms if step_ms >= 0 else real_ms)
            _pull_back(found, at_ms)
        if line.date is not None:
            dated, real_ms = (line.date, at_ms), 0
        found.append(at_ms)
    return found


def _pull_back(found: list[int], at_ms: int) -> None:
    """Correct estimated offsets that are later than `at_ms`, the known offset after them."""
    for number in range(len(found) - 1, -1, -1):
        if found[number] <= at_ms:
            return
        found[number] = at_ms


def _apart_ms(one: Line, other: Line) -> int:
    """Return the time between two lines. `s` starts again at each line `begin`."""
    if other.kind == "begin":
        apart_ms = (other.at - one.at) // timedelta(milliseconds=1)
    else:
        apart_ms = round((other.s - one.s) * _SECOND_MS)
    return max(0, apart_ms)


def _in_utc(line: Line) -> Line:
    """Convert the times to UTC. Raises `OverflowError` for a time after the year 9999."""
    line.at = _utc(line.at)
    line.date = None if line.date is None else _utc(line.date)
    return line


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
