"""A recording, read: what became of each event, and when the endpoint was out. Pure."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from fairwarning.client.model import Document, Event, Status
from fairwarning.client.parse_document import BadDocument, read_document
from fairwarning.scenarios.model import ScenarioProblem


class Fate(Struct, frozen=True, kw_only=True):
    """What became of an event, in milliseconds of the service's clock since it was recorded."""

    event: Event
    """As it was first seen."""
    seen_ms: int
    notice_ms: int | None
    """None: it had started when it was first seen."""
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
    fates: tuple[Fate, ...]
    outages: tuple[Outage, ...]
    ended_ms: int


def read_recording(text: str) -> Recording:
    """Raises ScenarioProblem."""
    lines = read_lines(text)
    if not lines or lines[0][0].kind != "begin":
        raise ScenarioProblem("a recording begins with the line `begin`; this is none", line=1)
    first = lines[0][0]
    fates: dict[str, Fate] = {}
    outages: list[Outage] = []
    out: tuple[str, int] | None = None
    at_ms = 0
    for line, at_ms in lines:
        if line.kind == "document":
            _take(fates, _document(line), line, at_ms)
        elif line.kind == "outage":
            out = (line.trouble, at_ms)
        elif out is not None:
            outages.append(Outage(trouble=out[0], from_ms=out[1], until_ms=at_ms))
            out = None
    return Recording(
        endpoint=first.endpoint,
        began=first.date or first.at,
        instance=first.instance,
        fates=tuple(fates.values()),
        outages=tuple(outages),
        ended_ms=at_ms,
    )


_S_MAX = 1e10
"""Three hundred years, with which can be reckoned."""


class Line(Struct, kw_only=True):
    """As the recorder writes it. What it does not know is left alone."""

    kind: str
    at: datetime
    s: Annotated[float, Meta(ge=0, le=_S_MAX)]
    endpoint: str = ""
    instance: str | None = None
    version: str = ""
    date: datetime | None = None
    """What the service's clock said; None if it did not answer."""
    document: dict[str, Any] = {}
    trouble: str = ""


def _document(line: Line) -> Document:
    try:
        return read_document(json.dumps(line.document).encode(), version=line.version)
    except BadDocument as problem:
        raise ScenarioProblem(f"{problem}; this recording is damaged") from None


def _take(fates: dict[str, Fate], document: Document, line: Line, at_ms: int) -> None:
    shown = {each.id: each for each in document.events}
    for id, event in shown.items():
        fate = fates.get(id)
        if fate is None:
            fates[id] = _first(event, line, at_ms)
        elif event.status is Status.STARTED and fate.started_ms is None:
            fates[id] = replace(fate, started_ms=at_ms)
    for id, fate in fates.items():
        if id not in shown and fate.ended_ms is None:
            fates[id] = replace(fate, ended_ms=at_ms)


def _first(event: Event, line: Line, at_ms: int) -> Fate:
    if event.status is Status.STARTED or event.not_before is None:
        return Fate(event=event, seen_ms=at_ms, notice_ms=None, started_ms=at_ms)
    now = line.date or line.at
    notice_ms = max(0, (event.not_before - now) // timedelta(milliseconds=1))
    return Fate(event=event, seen_ms=at_ms, notice_ms=notice_ms)


# The lines of a recording, and when each was. Pure.
_SECOND_MS = 1_000


def read_lines(text: str) -> list[tuple[Line, int]]:
    """With their milliseconds since the recording began. Raises ScenarioProblem."""
    lines = [*_lines(text)]
    return [*zip(lines, _offsets_ms(lines), strict=True)]


def _lines(text: str) -> Iterator[Line]:
    texts = text.splitlines()
    for number, each in enumerate(texts, start=1):
        try:
            yield _in_utc(msgspec.json.decode(each, type=Line))
        except (msgspec.DecodeError, RecursionError, OverflowError):
            if number == len(texts) and number > 1:
                return  # cut off in the middle of a word, as by a power cut
            message = "this is no line of a recording; make one with `fairwarning record`"
            raise ScenarioProblem(message, line=number) from None


def _offsets_ms(lines: Sequence[Line]) -> list[int]:
    found: list[int] = []
    dated: tuple[datetime, int] | None = None
    """The last date, and where it stands."""
    real_ms = 0
    """Since then, by the recorder's own clock."""
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
    """Those that had no date were guessed, and none was later than what is known now."""
    for number in range(len(found) - 1, -1, -1):
        if found[number] <= at_ms:
            return
        found[number] = at_ms


def _apart_ms(one: Line, other: Line) -> int:
    """A recorder that was started again counts from its own beginning."""
    if other.kind == "begin":
        apart_ms = (other.at - one.at) // timedelta(milliseconds=1)
    else:
        apart_ms = round((other.s - one.s) * _SECOND_MS)
    return max(0, apart_ms)


def _in_utc(line: Line) -> Line:
    """Raises OverflowError for a time of the year 9999 elsewhere that is in the next one here."""
    line.at = _utc(line.at)
    line.date = None if line.date is None else _utc(line.date)
    return line


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
