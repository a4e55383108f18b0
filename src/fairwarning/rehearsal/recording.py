"""A recording, read: what became of each event, and when the endpoint was out. Pure."""

import json
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.client.model import Document, Event, Status
from fairwarning.client.reading import BadDocument, read_document
from fairwarning.rehearsal.lines import Line, read_lines
from fairwarning.rehearsal.model import ScenarioProblem


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
