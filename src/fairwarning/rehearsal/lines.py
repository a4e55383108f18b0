"""The lines of a recording, and when each was. Pure.

Theory of operation. What matters is the clock of the service that was recorded: a virtual one may
have gone a day in a second, or stood still for an hour. Each answer says how late it is there, so
two lines are as far apart as their dates. A line without a date, such as the beginning of an
outage, is as far from the one before as the recorder's own seconds say, but not later than the
next line with one. A service whose clock was set back goes on from where it was.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from fairwarning.rehearsal.model import ScenarioProblem

_SECOND_MS = 1_000
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
