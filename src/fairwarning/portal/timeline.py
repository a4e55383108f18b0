"""Computes the geometry of the overview's timeline for a chosen zoom. Pure.

There is one lane for each scope and update domain. An event is a span of notice, from its
announcement to its NotBefore, and after that its impact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant, to_datetime
from fairwarning.core.model import Event, ScopeId
from fairwarning.operator_api import schemas
from fairwarning.operator_api.to_schema import event_of

WIDTH = 1_000
LABELS = 150
TOP = 26
LANE = 26
BAR = 14
BOTTOM = 20
BAR_WIDTH_MIN = 5  # A short impact must still be seen and clicked.
# Each lane has two elements and each bar four, and the page is to have at most 600.
LANES_MAX = 12
BARS_MAX = 20
LABEL_CHARS_MAX = 16  # As many characters as fit into `LABELS`.
TICK_ROOM = 60
"""The smallest distance between two labels, so that they do not overlap."""
TICKS_MAX = 12  # More labels would overlap.
_TICK_STEPS_MS = (
    *(n * MINUTE_MS for n in (5, 10, 30)),
    *(n * HOUR_MS for n in (1, 3, 6, 12)),
    *(n * DAY_MS for n in (1, 2, 7, 30, 90)),
)


class Zoom(StrEnum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Window:
    """The time that the timeline shows."""

    begins_ms: int
    ends_ms: int

    def x_of(self, instant: int) -> float:
        """Return the x of an instant. For an instant outside the window it is the nearest edge."""
        inside = min(max(instant, self.begins_ms), self.ends_ms) - self.begins_ms
        return round(LABELS + (WIDTH - LABELS) * inside / (self.ends_ms - self.begins_ms), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The time from the start to the end of an event's impact, as far as both are known."""

    scope: ScopeId
    event: Event
    starts_ms: int
    ends_ms: int
    is_over: bool

    def distance_ms(self, now: int) -> int:
        """Return the time between the impact and now; 0 during the impact."""
        return max(self.starts_ms - now, now - self.ends_ms, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An event in its lane: the notice from `notice_x` to `x`, then the impact."""

    x: float
    y: float
    width: float
    """The width of the impact; 0 if the impact is outside the window."""
    notice_x: float
    not_before_x: float | None
    """The x of NotBefore, or None if it is outside the window."""
    event: schemas.Event
    is_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    label: str
    is_alone: bool
    """Whether the lane is for a standalone VM, so that no update domain is shown."""
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
    zoom: Zoom
    height: int
    now_x: float
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    lanes_left_out: int
    bars_left_out: int

    # What is drawn alike is one path and not many lines, so that the page stays light.

    @property
    def stripes(self) -> str:
        """The path of the background of every second lane."""
        return " ".join(f"M0 {each.y}h{WIDTH}v{LANE}H0z" for each in self.lanes[::2])

    def grid(self, *, is_day: bool) -> str:
        """Return the path of the lines at midnights, or of those at other ticks."""
        found = [each for each in self.ticks if each.is_day == is_day]
        return " ".join(f"M{each.x} {TOP - 6}V{self.height - BOTTOM}" for each in found)

    @property
    def not_before(self) -> str:
        """The path of the lines at NotBefore of each event."""
        bars = [each for lane in self.lanes for each in lane.bars]
        return " ".join(
            f"M{each.not_before_x} {each.y - 3}v{BAR + 6}"
            for each in bars
            if each.not_before_x is not None
        )


def impact_of(scope: ScopeId, event: Event, now: Instant) -> Impact:
    """Return the impact. If the event ended without a start, the impact has no length."""
    ended, started = event.ended_ms, event.started_ms
    if ended is not None:
        starts, ends = ended if started is None else started, ended
    else:
        starts = event.not_before_ms if started is None else started
        ends = Instant(starts + max(event.duration_s, 0) * 1_000)
        if starts < now:
            ends = max(ends, now)
    return Impact(
        scope=scope, event=event, starts_ms=starts, ends_ms=ends, is_over=ended is not None
    )


def chart(
    events: Iterable[tuple[ScopeId, Event]], now: Instant, zone: ZoneInfo, zoom: Zoom | None = None
) -> Chart:
    """Return the chart of the events in the window. Without `zoom`, the best one is chosen.

    If there are too many lanes or bars, it has those that are nearest to now.
    """
    found = [impact_of(scope, event, now) for scope, event in events]
    zoom = zoom or nearest_zoom(found, now)
    window = window_of(zoom, found, now)
    inside = sorted(
        (each for each in found if _is_inside(each, window)),
        key=lambda each: (each.distance_ms(now), each.event.id),
    )
    known = list(dict.fromkeys(_key(each) for each in inside))
    drawn: dict[tuple[str, int], list[Impact]] = {key: [] for key in sorted(known[:LANES_MAX])}
    for each in [each for each in inside if _key(each) in drawn][:BARS_MAX]:
        drawn[_key(each)].append(each)
    lanes = tuple(
        _lane(row, key, impacts, window) for row, (key, impacts) in enumerate(drawn.items())
    )
    return Chart(
        zoom=zoom,
        height=TOP + LANE * len(lanes) + BOTTOM,
        now_x=window.x_of(now),
        lanes=lanes,
        ticks=ticks(window, zone),
        lanes_left_out=len(known) - len(lanes),
        bars_left_out=len(inside) - sum(len(each.bars) for each in lanes),
    )


def nearest_zoom(impacts: Iterable[Impact], now: Instant) -> Zoom:
    """Return the smallest zoom that shows the impact of the next event."""
    waiting_ms = [each.distance_ms(now) for each in impacts if not each.is_over]
    nearest = min(waiting_ms, default=DAY_MS)
    fitting = (zoom for zoom, (_, ahead) in _AROUND_NOW.items() if nearest < ahead)
    return next(fitting, Zoom.ALL)


_AROUND_NOW = {
    Zoom.HOUR: (20 * MINUTE_MS, HOUR_MS),
    Zoom.DAY: (6 * HOUR_MS, DAY_MS),
    Zoom.WEEK: (DAY_MS, 7 * DAY_MS),
}
"""For each zoom, how much time before now and after now is shown."""


def window_of(zoom: Zoom, impacts: Sequence[Impact], now: Instant) -> Window:
    if zoom is not Zoom.ALL:
        past, ahead = _AROUND_NOW[zoom]
        return Window(now - past, now + ahead)
    begins = min([each.event.created_ms for each in impacts] + [now - HOUR_MS])
    ends = max([each.ends_ms for each in impacts] + [now + HOUR_MS])
    # A margin, so that the last impact does not stick to the edge.
    return Window(begins, ends + (ends - begins) // 20)


def ticks(window: Window, zone: ZoneInfo) -> tuple[Tick, ...]:
    """Return ticks at round local times in `zone`, at most `TICKS_MAX`."""
    length = window.ends_ms - window.begins_ms
    step_ms = next((each for each in _TICK_STEPS_MS if length / each <= TICKS_MAX), length)
    at = to_datetime(Instant(window.begins_ms)).astimezone(zone)
    local = at.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    made: list[Tick] = []
    while True:
        local += timedelta(milliseconds=step_ms)
        # Steps are in local time, so that a day of 23 hours also has its tick at midnight.
        instant = int(local.replace(tzinfo=zone).astimezone(UTC).timestamp() * 1000)
        if instant > window.ends_ms:
            return tuple(each for each in made if each.is_day or _has_room(each, made))
        is_day = local.hour == local.minute == 0
        if instant < window.begins_ms:
            continue
        label = f"{local:%a} {local.day} {local:%b}" if is_day else f"{local:%H:%M}"
        made.append(Tick(x=window.x_of(instant), label=label, is_day=is_day))


def _is_inside(impact: Impact, window: Window) -> bool:
    begins_ms = impact.starts_ms if impact.is_over else impact.event.created_ms
    return impact.ends_ms >= window.begins_ms and begins_ms <= window.ends_ms


def _key(impact: Impact) -> tuple[str, int]:
    return impact.scope, impact.event.update_domain


def _has_room(tick: Tick, among: Sequence[Tick]) -> bool:
    """Return whether the tick's label overlaps with no label of a midnight."""
    return all(abs(each.x - tick.x) >= TICK_ROOM for each in among if each.is_day)


def _lane(row: int, key: tuple[str, int], impacts: Sequence[Impact], window: Window) -> Lane:
    y = TOP + LANE * row
    by_start = sorted(impacts, key=lambda each: each.starts_ms)
    return Lane(
        label=label_of(key[0]),
        is_alone="/vm/" in key[0],
        scope=key[0],
        update_domain=key[1],
        y=y,
        bars=tuple(_bar(each, y, window) for each in by_start),
    )


def _bar(impact: Impact, y: float, window: Window) -> Bar:
    x = window.x_of(impact.starts_ms)
    is_drawn = window.begins_ms <= impact.ends_ms and impact.starts_ms <= window.ends_ms
    width = max(window.x_of(impact.ends_ms) - x, BAR_WIDTH_MIN)
    not_before = impact.event.not_before_ms
    is_shown = window.begins_ms <= not_before <= window.ends_ms
    return Bar(
        x=min(x, WIDTH - BAR_WIDTH_MIN) if is_drawn else x,
        y=y + (LANE - BAR) / 2,
        width=round(min(width, max(WIDTH - x, BAR_WIDTH_MIN)), 1) if is_drawn else 0,
        notice_x=min(window.x_of(impact.event.created_ms), x),
        not_before_x=window.x_of(not_before) if is_shown else None,
        event=event_of(impact.scope, impact.event),
        is_over=impact.is_over,
    )


def label_of(scope: str) -> str:
    """Return the label of a scope: `web`, or `workers/1` for a placement group."""
    name = "/".join(scope.split("/")[3:]) or scope
    return name if len(name) <= LABEL_CHARS_MAX else f"{name[: LABEL_CHARS_MAX - 1]}…"
