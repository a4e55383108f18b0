"""When a calendar is open.

The rule: it is open at an instant if the clock on the wall of its time zone then shows a time
inside one of its windows, on a day that is not blacked out. So a window that the wall clock
skips in spring is not open that day, and one that it shows twice in autumn is open twice.

An event may start at any time from its announcement to NotBefore, because an approval starts
it. So room is sought for the whole of it, in one uninterrupted stretch of open time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from fairwarning.core.instants import DAY_MS, Instant, to_datetime
from fairwarning.core.rollouts.model import DAY_MINUTES, Calendar, Window

HORIZON_DAYS = 400
"""As far ahead as anything is sought: more than a year, so that every yearly pattern shows."""


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
    """The first instant from here on after which it stays open for `needed_ms`, ends included.

    None if there is none within the horizon.
    """
    for begin, end in stretches(calendar, instant):
        if end is None or end - begin > needed_ms:
            return begin
    return None


def closes(calendar: Calendar, instant: Instant) -> Instant | None:
    """The end of the stretch that is open at this instant, or next; None: it never ends."""
    for _, end in stretches(calendar, instant):
        return end
    return None


def stretches(calendar: Calendar, instant: Instant) -> Iterator[tuple[Instant, Instant | None]]:
    """Open time from here to the horizon, as long pieces as there are; None: it never ends."""
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
    """The instants of this UTC day at which the answer may change, and what it is from there on."""
    edges = _edges(calendar, day)
    zone = ZoneInfo(calendar.time_zone)
    shifts = [
        _shift(zone, before, after)
        for before, after in pairwise([*edges, Instant((day + 1) * DAY_MS)])
        if _offset(zone, before) != _offset(zone, after)
    ]
    return tuple((at, is_open(calendar, at)) for at in sorted(edges + shifts))


def _edges(calendar: Calendar, day: int) -> list[Instant]:
    """Midnight in UTC, and whenever the wall clock may show the begin or end of something.

    Twice where the clock is set back; the times that it skips do no harm. The local days
    around are looked at too, because no zone is a whole day away from UTC.
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
    """The first instant with another offset than `before` has."""
    offset = _offset(zone, before)
    while after - before > 1:
        middle = Instant((before + after) // 2)
        if _offset(zone, middle) == offset:
            before = middle
        else:
            after = middle
    return after
