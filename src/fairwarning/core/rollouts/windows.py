"""This module computes when a calendar is open.

A calendar is open at an instant if the local time in its time zone is then inside one of its
windows, on a day that is not blacked out. So a window that the clock change skips in spring is not
open on that day, and a window that occurs twice in autumn is open twice.

An approval can start an event at any time between its announcement and NotBefore. So the whole time
from the announcement to the end of the impact must fit into one period of open time.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from fairwarning.core.instants import DAY_MS, Instant, to_datetime
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.model import DAY_MINUTES, DAYS, Blackout, Calendar, Window

HORIZON_DAYS = 400
"""How far ahead this module looks. It is more than a year, so that yearly patterns are found."""


def is_open(calendar: Calendar, instant: Instant) -> bool:
    local = to_datetime(instant).astimezone(ZoneInfo(calendar.time_zone))
    today = local.date()
    if any(each.first <= today <= each.last for each in calendar.blackouts):
        return False
    return not calendar.windows or any(_covers(window, local) for window in calendar.windows)


def _covers(window: Window, local: datetime) -> bool:
    day, minute = local.weekday(), local.hour * 60 + local.minute
    if window.from_minute < window.to_minute:
        return day in window.days and window.from_minute <= minute < window.to_minute
    if minute >= window.from_minute:
        return day in window.days
    return minute < window.to_minute and (day - 1) % 7 in window.days


def next_opening(calendar: Calendar, instant: Instant, needed_ms: int) -> Instant | None:
    """Return the first instant, from `instant` on, that begins over `needed_ms` of open time."""
    for begin, end in open_periods(calendar, instant):
        if end is None or end - begin > needed_ms:
            return begin
    return None


def closes(calendar: Calendar, instant: Instant) -> Instant | None:
    """Return the end of the present or next open period, or None if it has no end."""
    for _, end in open_periods(calendar, instant):
        return end
    return None


def open_periods(calendar: Calendar, instant: Instant) -> Iterator[tuple[Instant, Instant | None]]:
    """Yield the begin and end of each open period. The end is None if the calendar never closes."""
    if not calendar.windows and not calendar.blackouts:
        yield instant, None
        return
    begin = instant if is_open(calendar, instant) else None
    today = instant // DAY_MS
    for day in range(today, today + HORIZON_DAYS):
        for at, opens in _changes(calendar, day):
            if at <= instant:
                continue
            if opens and begin is None:
                begin = at
            elif not opens and begin is not None:
                yield begin, at
                begin = None
    if begin is not None:
        yield begin, Instant((today + HORIZON_DAYS) * DAY_MS)


@lru_cache(4_096)
def _changes(calendar: Calendar, day: int) -> tuple[tuple[Instant, bool], ...]:
    """Return when the calendar may open or close on this UTC day, and whether it is open then."""
    edges = _edges(calendar, day)
    zone = ZoneInfo(calendar.time_zone)
    shifts = [
        _shift(zone, before, after)
        for before, after in pairwise([*edges, Instant((day + 1) * DAY_MS)])
        if _offset(zone, before) != _offset(zone, after)
    ]
    return tuple((at, is_open(calendar, at)) for at in sorted(edges + shifts))


def _edges(calendar: Calendar, day: int) -> list[Instant]:
    """Return midnight and all other instants of a UTC day at which a window or local day may begin.

    Where the clock is set back, a local time gives two instants; a local time that is skipped does
    no harm. The local days before and after are included, because local days and UTC days overlap.
    """
    zone = ZoneInfo(calendar.time_zone)
    minutes = {0} | {
        minute % DAY_MINUTES
        for each in calendar.windows
        for minute in (each.from_minute, each.to_minute)
    }
    begin, end = day * DAY_MS, (day + 1) * DAY_MS
    midnight = to_datetime(Instant(begin)).replace(tzinfo=None)
    shown = (
        midnight + timedelta(days=days, minutes=minute) for days in (-1, 0, 1) for minute in minutes
    )
    edges = {_instant(each.replace(tzinfo=zone, fold=fold)) for each in shown for fold in (0, 1)}
    return sorted({Instant(begin)} | {each for each in edges if begin <= each < end})


def _instant(local: datetime) -> Instant:
    return Instant(round(local.astimezone(UTC).timestamp() * 1000))


def _offset(zone: ZoneInfo, instant: Instant) -> timedelta | None:
    return to_datetime(instant).astimezone(zone).utcoffset()


def _shift(zone: ZoneInfo, before: Instant, after: Instant) -> Instant:
    """Return the first instant up to `after` whose UTC offset differs from that at `before`."""
    offset = _offset(zone, before)
    while after - before > 1:
        middle = Instant((before + after) // 2)
        if _offset(zone, middle) == offset:
            before = middle
        else:
            after = middle
    return after


_EVERY_DAY = "daily"
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def parse_window(text: str) -> Window:
    """Parse a window like `mon-fri 22:00-04:00`, `sat,sun 08:00-20:00` or `01:00-05:00` (daily).
    Raises Refused if the text is not a window.
    """
    days, _, hours = text.strip().lower().rpartition(" ")
    opens, dash, closes = hours.partition("-")
    if not dash:
        raise _invalid(f"{text!r} is no window; write one like 'mon-fri 22:00-04:00'")
    return make_window(_split_days(days or _EVERY_DAY), opens, closes)


def make_window(days: Sequence[str], opens: str, closes: str) -> Window:
    """Return a window from names of days (none means daily) and two times. Raises Refused."""
    numbers = sorted({_day(name) for name in days}) if days else range(len(DAYS))
    from_minute, to_minute = _minute(opens), _minute(closes)
    if from_minute == DAY_MINUTES:
        raise _invalid("a window cannot open at 24:00; write 00:00 and name the next day")
    if from_minute == to_minute:
        raise _invalid(f"the window {opens}-{closes} is empty; write 00:00-24:00 for the whole day")
    return Window(days=tuple(numbers), from_minute=from_minute, to_minute=to_minute)


def parse_blackout(text: str) -> Blackout:
    """Parse a blackout: `2026-12-24`, or `2026-12-24/2026-12-26` with both days. Raises Refused."""
    first, slash, last = text.strip().partition("/")
    blackout = Blackout(first=_date(first), last=_date(last if slash else first))
    if blackout.last < blackout.first:
        raise _invalid(f"the blackout {text!r} ends before it begins; swap the dates")
    return blackout


def _split_days(text: str) -> list[str]:
    return [day for part in text.replace(" ", "").split(",") for day in _range(part)]


def _range(text: str) -> Sequence[str]:
    if text == _EVERY_DAY:
        return DAYS
    first, dash, last = text.partition("-")
    if not dash:
        return [text]
    begin, end = _day(first), _day(last)
    return [DAYS[n % len(DAYS)] for n in range(begin, end + 1 + (7 if end < begin else 0))]


def _day(name: str) -> int:
    if name.lower() not in DAYS:
        raise _invalid(f"{name!r} is no day; use {', '.join(DAYS)}, or a range like mon-fri")
    return DAYS.index(name.lower())


def _minute(text: str) -> int:
    if not _TIME.fullmatch(text):
        raise _invalid(f"{text!r} is no time of day; write one from 00:00 to 24:00, as in 22:00")
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def _date(text: str) -> date:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise _invalid(f"{text!r} is no date; write one like 2026-12-24, or a range with a '/'")


def _invalid(message: str) -> Refused:
    return Refused(Code.ROLLOUT_INVALID, message)
