"""The timeline's geometry: what is drawn where, and what is left out."""

from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.model import Event, EventId, EventType, InstanceName, Phase, ScopeId, Source
from fairwarning.portal import timeline
from fairwarning.portal.timeline import Zoom

UTC = ZoneInfo("UTC")
NOW = Instant(1_794_825_000_000)  # 2026-11-16 10:30 UTC
WEB = "sub/group/availability-set/web"


Planned = tuple[ScopeId, Event]


def at(offset_ms: int | None) -> Instant | None:
    return None if offset_ms is None else Instant(NOW + offset_ms)


def event(
    *,
    id: str = "E",
    scope: str = WEB,
    domain: int = 0,
    not_before: int = HOUR_MS,
    started: int | None = None,
    ended: int | None = None,
    duration_s: int = -1,
    created: int = -2 * DAY_MS,
) -> Planned:
    phase = Phase.COMPLETED if ended is not None else Phase.STARTED
    return ScopeId(scope), Event(
        id=EventId(id),
        type=EventType.REBOOT,
        phase=Phase.SCHEDULED if started is ended is None else phase,
        source=Source.PLATFORM,
        resources=(InstanceName("web-0"),),
        update_domain=domain,
        not_before_ms=Instant(NOW + not_before),
        duration_s=duration_s,
        created_ms=Instant(NOW + created),
        started_ms=at(started),
        ended_ms=at(ended),
    )


def test_an_event_to_come_strikes_at_its_time_for_as_long_as_it_says() -> None:
    found = timeline.impact_of(*event(not_before=HOUR_MS, duration_s=120), NOW)
    assert (found.starts_ms - NOW, found.ends_ms - NOW) == (HOUR_MS, HOUR_MS + 2 * MINUTE_MS)
    assert not found.is_over


def test_what_is_under_way_for_longer_than_it_said_lasts_until_now() -> None:
    found = timeline.impact_of(*event(started=-HOUR_MS, duration_s=60), NOW)
    assert (found.starts_ms - NOW, found.ends_ms) == (-HOUR_MS, NOW)


def test_what_was_cancelled_is_a_mark_at_its_end() -> None:
    found = timeline.impact_of(*event(not_before=DAY_MS, ended=-HOUR_MS), NOW)
    assert found.starts_ms == found.ends_ms == NOW - HOUR_MS
    assert found.is_over


def test_there_is_a_lane_for_each_scope_and_update_domain_that_has_something() -> None:
    chart = timeline.chart(
        [
            event(id="a", domain=1),
            event(id="b", domain=0),
            event(id="c", domain=0, not_before=2 * HOUR_MS),
            event(id="d", scope="sub/group/vm/db"),
        ],
        NOW,
        UTC,
    )
    assert [(each.label, each.update_domain, len(each.bars)) for each in chart.lanes] == [
        ("web", 0, 2),
        ("web", 1, 1),
        ("db", 0, 1),
    ]
    assert [each.is_alone for each in chart.lanes] == [False, False, True]
    assert (chart.lanes_left_out, chart.bars_left_out) == (0, 0)


def test_the_week_is_the_past_day_and_the_next_seven() -> None:
    inside = [
        event(id="a", started=-DAY_MS - HOUR_MS, ended=-DAY_MS),
        event(id="b", created=HOUR_MS, not_before=7 * DAY_MS),
    ]
    outside = [
        event(id="c", started=-DAY_MS - HOUR_MS, ended=-DAY_MS - 1),
        event(id="d", created=7 * DAY_MS + 1, not_before=8 * DAY_MS),
    ]
    chart = timeline.chart([*inside, *outside], NOW, UTC, Zoom.WEEK)
    drawn = [bar.event.id for lane in chart.lanes for bar in lane.bars]
    assert drawn == ["a", "b"]


def test_of_too_many_lanes_those_nearest_to_now_are_drawn_and_the_others_counted() -> None:
    events = [
        event(id=f"{n:03}", scope=f"sub/group/vm/m{n:03}", not_before=(100 - n) * HOUR_MS)
        for n in range(60)
    ]
    chart = timeline.chart(events, NOW, UTC, Zoom.WEEK)
    assert len(chart.lanes) == timeline.LANES_MAX
    left_out = 60 - timeline.LANES_MAX
    assert chart.lanes[0].label == f"m{left_out:03}"
    assert (chart.lanes_left_out, chart.bars_left_out) == (left_out, left_out)


def test_lanes_are_counted_however_many_bars_there_are() -> None:
    crowd = timeline.BARS_MAX + 50
    events = [event(id=f"{n:04}", scope=f"sub/group/vm/m{n:04}") for n in range(crowd)]
    chart = timeline.chart(events, NOW, UTC)
    assert chart.lanes_left_out == chart.bars_left_out == crowd - timeline.LANES_MAX


def test_of_too_many_bars_those_nearest_to_now_are_drawn_and_the_others_counted() -> None:
    events = [event(id=f"{n:04}", not_before=n * MINUTE_MS) for n in range(timeline.BARS_MAX + 7)]
    chart = timeline.chart(events, NOW, UTC)
    assert len(chart.lanes[0].bars) == timeline.BARS_MAX
    assert chart.lanes[0].bars[0].event.id == "0000"
    assert chart.bars_left_out == 7


WEEK = timeline.window_of(Zoom.WEEK, [], NOW)


def test_without_a_choice_the_zoom_shows_the_next_impact() -> None:
    def zoom(*events: Planned) -> Zoom:
        return timeline.chart(events, NOW, UTC).zoom

    ended = event(started=-2 * HOUR_MS, ended=-HOUR_MS)
    assert zoom(event(not_before=15 * MINUTE_MS), event(not_before=3 * DAY_MS)) is Zoom.HOUR
    assert zoom(event(started=-MINUTE_MS), ended) is Zoom.HOUR
    assert zoom(event(not_before=HOUR_MS), ended) is Zoom.DAY
    assert zoom(event(not_before=DAY_MS), ended) is Zoom.WEEK
    assert zoom(event(not_before=7 * DAY_MS)) is Zoom.ALL
    assert zoom(ended) is Zoom.WEEK


def test_a_notice_of_15_minutes_takes_a_good_part_of_the_hour() -> None:
    soon = event(created=0, not_before=15 * MINUTE_MS, duration_s=300)
    (lane,) = timeline.chart([soon], NOW, UTC).lanes
    (bar,) = lane.bars
    assert bar.x - bar.notice_x > 150
    assert bar.not_before_x == bar.x
    assert bar.width > 50


def test_an_event_that_began_early_shows_where_its_not_before_was() -> None:
    early = event(created=-10 * MINUTE_MS, not_before=10 * MINUTE_MS, started=-5 * MINUTE_MS)
    (bar,) = timeline.chart([early], NOW, UTC, Zoom.HOUR).lanes[0].bars
    assert bar.notice_x < bar.x < (bar.not_before_x or 0)
    (far,) = timeline.chart([event(not_before=DAY_MS)], NOW, UTC, Zoom.HOUR).lanes[0].bars
    assert (far.not_before_x, far.width) == (None, 0), "the impact is not in this hour"


def test_all_shows_every_event_from_its_announcement_to_its_end() -> None:
    events = [
        event(id="a", created=-90 * DAY_MS, started=-80 * DAY_MS, ended=-79 * DAY_MS),
        event(id="b", created=-DAY_MS, not_before=40 * DAY_MS, duration_s=60),
    ]
    chart = timeline.chart(events, NOW, UTC, Zoom.ALL)
    bars = [bar for lane in chart.lanes for bar in lane.bars]
    assert [each.event.id for each in bars] == ["a", "b"]
    assert all(timeline.LABELS <= each.notice_x < each.x < timeline.WIDTH for each in bars)


@given(st.lists(st.integers(-2 * DAY_MS, 9 * DAY_MS), min_size=2, max_size=2))
def test_later_is_never_further_left(offsets: list[int]) -> None:
    early, late = sorted(offsets)
    assert WEEK.x_of(NOW + early) <= WEEK.x_of(NOW + late)


@given(
    st.integers(-9 * DAY_MS, 9 * DAY_MS),
    st.integers(-1, 7 * 86_400),
    st.sampled_from([None, *Zoom]),
)
def test_every_bar_lies_within_the_picture_and_can_be_seen(
    offset: int, duration_s: int, zoom: Zoom | None
) -> None:
    chart = timeline.chart([event(not_before=offset, duration_s=duration_s)], NOW, UTC, zoom)
    for bar in (bar for lane in chart.lanes for bar in lane.bars):
        assert bar.width == 0 or bar.width >= timeline.BAR_WIDTH_MIN
        assert timeline.LABELS <= bar.notice_x <= bar.x
        assert bar.x + bar.width <= timeline.WIDTH + 0.1


def test_days_begin_at_the_readers_midnight() -> None:
    berlin, kolkata = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")
    midnight = {
        zone.key: next(each.x for each in timeline.ticks(WEEK, zone) if each.label == "Tue 17 Nov")
        for zone in (UTC, berlin, kolkata)
    }
    assert midnight["UTC"] == WEEK.x_of(NOW + 13 * HOUR_MS + 30 * MINUTE_MS)
    assert midnight["Europe/Berlin"] == WEEK.x_of(NOW + 12 * HOUR_MS + 30 * MINUTE_MS)
    assert midnight["Asia/Kolkata"] == WEEK.x_of(NOW + 8 * HOUR_MS)


def test_a_window_that_begins_and_ends_at_round_times_has_ticks_at_both_ends() -> None:
    window = timeline.Window(NOW - 30 * MINUTE_MS, NOW + 30 * MINUTE_MS)
    labels = [each.label for each in timeline.ticks(window, UTC)]
    assert (labels[0], labels[-1]) == ("10:00", "11:00")


def test_a_day_of_25_hours_still_begins_at_midnight() -> None:
    before_the_change = Instant(1_792_800_000_000)  # 2026-10-24 00:00 UTC
    window = timeline.window_of(Zoom.WEEK, [], before_the_change)
    found = [
        each
        for each in timeline.ticks(window, ZoneInfo("Europe/Berlin"))
        if each.label == "Mon 26 Oct"
    ]
    assert [each.x for each in found] == [window.x_of(before_the_change + 47 * HOUR_MS)]


@given(
    st.integers(0, 60 * 24),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    st.sampled_from([Zoom.HOUR, Zoom.DAY, Zoom.WEEK]),
)
def test_labels_keep_clear_of_each_other(minutes: int, zone: str, zoom: Zoom) -> None:
    window = timeline.window_of(zoom, [], Instant(NOW + minutes * MINUTE_MS))
    found = sorted(each.x for each in timeline.ticks(window, ZoneInfo(zone)))
    assert 3 <= len(found) <= timeline.TICKS_MAX + 1
    assert all(b - a >= timeline.TICK_ROOM for a, b in pairwise(found))


def test_a_long_name_is_cut_and_a_placement_group_named() -> None:
    assert timeline.label_of("sub/group/scale-set/workers/1") == "workers/1"
    assert len(timeline.label_of("sub/group/vm/" + "x" * 80)) == timeline.LABEL_CHARS_MAX
