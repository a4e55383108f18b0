"""Computes the geometry of the overview's timeline: the past day and the next seven. Pure.

There is one lane for each scope and update domain. Near the present the reader needs hours, and
later days. So the scale has three parts (past day, next day, six days after), and each is linear.
To show more days, change `PAST_MS`, `AHEAD_MS` and `_STRETCHES`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from fairwarning.core.instants import DAY_MS, Instant, to_datetime
from fairwarning.core.model import EventType
from fairwarning.operator_api.schemas import Event

WIDTH = 1_000
LABELS = 150
TOP = 26
LANE = 26
BAR = 14
BOTTOM = 20
BAR_WIDTH_MIN = 5  # A short impact must still be seen and clicked.
LANES_MAX = 40  # More lanes do not fit on two screens.
BARS_MAX = 300  # Browsers draw so many at once without delay.
LABEL_CHARS_MAX = 16  # As many characters as fit into `LABELS`.
TICK_ROOM = 40
"""The smallest distance between two labels, so that they do not overlap."""
PAST_MS = DAY_MS
AHEAD_MS = 7 * DAY_MS
TICK_HOURS = 6  # Four labels a day have enough room.
_STRETCHES = ((-PAST_MS, 0, 0.28), (0, DAY_MS, 0.36), (DAY_MS, AHEAD_MS, 0.36))


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The time from the start to the end of an event's impact, as far as both are known."""

    event: Event
    starts_ms: int
    ends_ms: int
    is_over: bool

    def distance_ms(self, now: int) -> int:
        """Return the time between the impact and now; 0 during the impact."""
        return max(self.starts_ms - now, now - self.ends_ms, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: float
    width: float
    lead_x: float
    """The x at which the line of the event's notice begins."""
    kind: EventType
    impact: Impact


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    label: str
    is_alone: bool
    """Whether it is a standalone VM, so that its update domain is not shown."""
    scope: str
    update_domain: int
    y: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    x: float
    label: str
    is_day: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    height: int
    now_x: float
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    lanes_left_out: int
    bars_left_out: int


def impact_of(event: Event, now: Instant) -> Impact:
    """Return the impact. For an event that ended without a start, it begins and ends there."""
    if event.ended is not None:
        starts, ends = _ms(event.started or event.ended), _ms(event.ended)
    else:
        starts = _ms(event.started or event.not_before)
        ends = starts + max(event.duration_seconds, 0) * 1_000
        if starts < now:
            ends = max(ends, now)
    return Impact(event=event, starts_ms=starts, ends_ms=ends, is_over=event.ended is not None)


def chart(events: Iterable[Event], now: Instant, zone: ZoneInfo) -> Chart:
    """Return the chart of the events in the window.

    If there are too many lanes or bars, it has those that are nearest to now.
    """
    found = [impact_of(each, now) for each in events]
    inside = sorted(
        (
            each
            for each in found
            if each.ends_ms >= now - PAST_MS and each.starts_ms <= now + AHEAD_MS
        ),
        key=lambda each: (each.distance_ms(now), each.event.id),
    )
    known = list(dict.fromkeys(_key(each) for each in inside))
    drawn: dict[tuple[str, int], list[Impact]] = {key: [] for key in sorted(known[:LANES_MAX])}
    for each in [each for each in inside if _key(each) in drawn][:BARS_MAX]:
        drawn[_key(each)].append(each)
    lanes = tuple(_lane(row, key, impacts, now) for row, (key, impacts) in enumerate(drawn.items()))
    return Chart(
        height=TOP + LANE * len(lanes) + BOTTOM,
        now_x=x_of(now, now),
        lanes=lanes,
        ticks=ticks(now, zone),
        lanes_left_out=len(known) - len(lanes),
        bars_left_out=len(inside) - sum(len(each.bars) for each in lanes),
    )


def x_of(instant: int, now: int) -> float:
    """Return the x of an instant. For an instant outside the window it is the nearest edge."""
    away, left, room = instant - now, float(LABELS), WIDTH - LABELS
    for begins, ends, share in _STRETCHES:
        inside = min(max(away, begins), ends) - begins
        left += room * share * inside / (ends - begins)
    return round(left, 1)


def ticks(now: Instant, zone: ZoneInfo) -> tuple[Tick, ...]:
    """Return ticks at each midnight in `zone`, and every six hours in the past and next day."""
    at = to_datetime(Instant(now - PAST_MS)).astimezone(zone)
    step = at.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    made: list[Tick] = []
    while True:
        step += timedelta(hours=TICK_HOURS)
        # Steps are in local time, so that a day of 23 hours also has its tick at midnight.
        instant = int(step.replace(tzinfo=zone).astimezone(UTC).timestamp() * 1000)
        if instant > now + AHEAD_MS:
            return tuple(each for each in made if each.is_day or _has_room(each, made))
        is_day = step.hour == 0
        if instant < now - PAST_MS or (instant > now + DAY_MS and not is_day):
            continue
        label = f"{step:%a} {step.day}" if is_day else f"{step:%H:%M}"
        made.append(Tick(x=x_of(instant, now), label=label, is_day=is_day))


def _key(impact: Impact) -> tuple[str, int]:
    return impact.event.scope, impact.event.update_domain


def _has_room(tick: Tick, among: Sequence[Tick]) -> bool:
    """Whether the tick's label overlaps with no label of a midnight."""
    return all(abs(each.x - tick.x) >= TICK_ROOM for each in among if each.is_day)


def _lane(row: int, key: tuple[str, int], impacts: Sequence[Impact], now: Instant) -> Lane:
    y = TOP + LANE * row
    return Lane(
        label=label_of(key[0]),
        is_alone="/vm/" in key[0],
        scope=key[0],
        update_domain=key[1],
        y=y,
        bars=tuple(_bar(each, y, now) for each in sorted(impacts, key=lambda each: each.starts_ms)),
    )


def _bar(impact: Impact, y: float, now: Instant) -> Bar:
    x = x_of(impact.starts_ms, now)
    width = max(x_of(impact.ends_ms, now) - x, BAR_WIDTH_MIN)
    return Bar(
        x=min(x, WIDTH - BAR_WIDTH_MIN),
        y=y + (LANE - BAR) / 2,
        width=round(min(width, max(WIDTH - x, BAR_WIDTH_MIN)), 1),
        lead_x=min(x_of(_ms(impact.event.created), now), x),
        kind=impact.event.type,
        impact=impact,
    )


def label_of(scope: str) -> str:
    """Return the label of a scope: `web`, or `workers/1` for a placement group."""
    name = "/".join(scope.split("/")[3:]) or scope
    return name if len(name) <= LABEL_CHARS_MAX else f"{name[: LABEL_CHARS_MAX - 1]}…"


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)
