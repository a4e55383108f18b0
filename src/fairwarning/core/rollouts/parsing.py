"""Windows and blackouts as people write them."""

import re
from collections.abc import Sequence
from datetime import date

from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.model import DAY_MINUTES, DAYS, Blackout, Window

_EVERY_DAY = "daily"
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def parse_window(text: str) -> Window:
    """`mon-fri 22:00-04:00`, `sat,sun 08:00-20:00`, `daily 01:00-05:00` or `01:00-05:00`."""
    days, _, hours = text.strip().lower().rpartition(" ")
    opens, dash, closes = hours.partition("-")
    if not dash:
        raise _invalid(f"{text!r} is no window; write one like 'mon-fri 22:00-04:00'")
    return make_window(_split_days(days or _EVERY_DAY), opens, closes)


def make_window(days: Sequence[str], opens: str, closes: str) -> Window:
    """From its parts: names of days, and two times like `22:00`. No days: every day."""
    numbers = sorted({_day(name) for name in days}) if days else range(len(DAYS))
    from_minute, to_minute = _minute(opens), _minute(closes)
    if from_minute == DAY_MINUTES:
        raise _invalid("a window cannot open at 24:00; write 00:00 and name the next day")
    if from_minute == to_minute:
        raise _invalid(f"the window {opens}-{closes} is empty; write 00:00-24:00 for the whole day")
    return Window(days=tuple(numbers), from_minute=from_minute, to_minute=to_minute)


def parse_blackout(text: str) -> Blackout:
    """`2026-12-24`, or `2026-12-24/2026-12-26` with both ends included."""
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
