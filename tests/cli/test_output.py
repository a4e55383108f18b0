"""What people see, in any width, without a server."""

import io
import re
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len
from rich.console import Console

from fairwarning.cli.notification import letters_table, notifications_table
from fairwarning.cli.output import WIDTH_MAX, draw, make_console
from fairwarning.cli.rollout import plan_page, rollout_page, rollouts_table
from fairwarning.cli.table_layout import shorten
from fairwarning.cli.table_model import Cell, Lines, Shown
from fairwarning.cli.tables.cells import short_ids, short_scopes
from fairwarning.cli.tables.events import event_card, event_page, events_table
from fairwarning.cli.tables.fleet import changes_list, changes_summary, fleet_page
from fairwarning.cli.tables.history import history_table
from fairwarning.cli.token import tokens_table
from fairwarning.cli.wait import ending, progress
from fairwarning.common.escape import clean, one_line, several
from tests.cli.values import (
    ID,
    NOW,
    OTHER_ID,
    WEB,
    a_scope,
    an_entry,
    an_event,
    an_instance,
)


def drawn(*shown: Shown, width: int = 200, **options: Any) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, highlight=False, markup=False, emoji=False, **options
    )
    draw(console, *shown)
    return stream.getvalue()


STEP = {
    "scope": WEB,
    "updateDomain": 1,
    "instances": ["web-1"],
    "phase": "announced",
    "event": ID,
    "announceAt": "2026-11-16T12:00:00Z",
    "notBefore": "2026-11-16T12:15:00Z",
    "ends": None,
}
WAITING = {**STEP, "phase": "waiting", "event": None}
ROLLOUT = {
    "id": "20261116-120000-4f2a9c",
    "type": "Reboot",
    "phase": "running",
    "steps": [STEP, WAITING, {**STEP, "phase": "completed"}],
    "scopes": [],
    "windows": [{"days": ["sat", "sun"], "from": "01:00", "to": "05:00"}],
    "timeZone": "Europe/Berlin",
    "pause": "PT10M",
    "created": "2026-11-16T12:00:00Z",
    "createdBy": "operator:eva",
}
TOKEN = {"id": "tok-1234", "name": "ci", "role": "operator", "created": "2026-11-16T12:00:00Z"}
NOTIFICATION = {
    "id": "N-1234",
    "name": "ops",
    "kind": "webhook",
    "url": "https://ops.example/…",
    "filters": {"kinds": ["Started"], "types": ["Reboot"], "scopes": ["web"], "sources": []},
    "created": "2026-11-16T12:00:00Z",
}
LETTER = {"id": "L-1", "target": "N-1234", "title": "Reboot", "attempts": 8, "error": "refused"}


def test_events_show_both_times_and_what_is_enough_of_their_ids() -> None:
    text = drawn(events_table([an_event()], NOW, empty="none"))
    assert re.search(rf"^{ID[:8]} ", text, re.MULTILINE)
    assert re.search(r"\d\d:\d\d:00, in 15 min", text)
    assert re.search(r"^Times are in \S+\.$", text, re.MULTILINE)
    assert "availability-set/web" in text


def test_ids_that_begin_alike_are_shown_until_they_differ() -> None:
    assert short_ids(["602D9444-AA", "602D9444-AB", "7"]) == {
        "602D9444-AA": "602D9444-AA",
        "602D9444-AB": "602D9444-AB",
        "7": "7",
    }
    assert short_ids([ID, OTHER_ID]) == {ID: ID[:8], OTHER_ID: OTHER_ID[:8]}


@pytest.mark.parametrize("width", [20, 36, 40, 50, 60, 80, 100])
def test_no_width_mangles_an_id(width: int) -> None:
    listed = events_table([an_event(), an_event(id=OTHER_ID)], NOW, empty="none")
    history = history_table([an_entry()], NOW)
    text = drawn(listed, history, *rollout_page(ROLLOUT, NOW), width=width)
    assert text.count(ID[:8]) == 4
    assert OTHER_ID[:8] in text
    assert "20261116-120000-4f2a9c" in text
    assert ID in drawn(*event_page(an_event(), NOW), width=width)


def test_a_name_loses_its_middle_and_a_list_its_end() -> None:
    assert shorten("workers-of-the-west_12", 12) == "worker…st_12"
    assert shorten("web-0, web-1 and 8 more", 12) == "web-0, web-…"
    assert cell_len(shorten("東京東京東京", 7)) == 7
    assert shorten("web-0", 12) == "web-0"


def test_a_long_line_is_broken_between_words_only() -> None:
    text = drawn(
        *event_page(an_event(description="word " * 30, scope=f"sub/{'x' * 90}"), NOW), width=60
    )
    assert max(len(line) for line in text.splitlines() if "xxx" not in line) <= 60
    assert f"sub/{'x' * 90}" in text
    assert text.count("word") == 30


def test_colour_is_for_terminals_and_for_those_who_want_it() -> None:
    table = events_table([an_event()], NOW, empty="none")
    assert "\x1b[" not in drawn(table)
    assert "\x1b[33m" in drawn(table, force_terminal=True, color_system="standard")
    assert "\x1b[33m" not in drawn(
        table, force_terminal=True, color_system="standard", no_color=True
    )


def test_text_of_others_cannot_move_the_cursor() -> None:
    evil = "\x1b[2Jgone\x9b1m\u202e\r"
    shown = drawn(
        *event_page(an_event(description=evil, resources=[evil]), NOW),
        events_table([an_event(resources=[evil])], NOW, empty=""),
        Lines(lines=((Cell(evil),),)),
    )
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert "gone" in shown
    assert clean("Grüße, 東京") == "Grüße, 東京"
    assert one_line("a\nb\tc") == "a b c"


def test_markup_in_a_description_is_text() -> None:
    assert "[red]x[/red] :smile:" in drawn(
        *event_page(an_event(description="[red]x[/red] :smile:"), NOW)
    )


def test_one_event_shows_what_is_known_and_nothing_else() -> None:
    text = drawn(*event_page(an_event(durationSeconds=90, timeline=[an_entry(why="disk")]), NOW))
    assert "1 min 30 s" in text
    assert "by operator:eva (disk)" in text
    assert "replaced by" not in text
    assert "duration" not in drawn(*event_page(an_event(), NOW))


def test_one_event_says_what_it_waits_for() -> None:
    assert "for an approval; or else" in drawn(
        event_card(an_event(waits="for an approval; or else"), NOW)
    )
    assert "waits" not in drawn(event_card(an_event(waits=None), NOW))


def test_empty_lists_say_what_to_do() -> None:
    assert drawn(events_table([], NOW, empty="No event.")) == "No event.\n"
    assert "fairwarning fleet apply" in drawn(*fleet_page([]))
    assert "token create" in drawn(tokens_table([], NOW))
    assert "notification add" in drawn(notifications_table([], NOW))
    assert "rollout start" in drawn(rollouts_table([], NOW))
    assert drawn(letters_table([])) == "Everything was delivered.\n"


def test_the_fleet_shows_scopes_and_instances() -> None:
    text = drawn(*fleet_page([a_scope(WEB, an_instance("web-0", addresses=["10.0.0.1"]))]))
    assert "web-0" in text
    assert "10.0.0.1" in text


def test_the_fleet_shows_who_goes_and_what_the_model_says_where_there_is_one() -> None:
    web = a_scope(WEB, an_instance("web-0"))
    assert "MODEL" not in drawn(*fleet_page([web]))
    workers = a_scope(
        "sub/group/scale-set/workers/0",
        an_instance("workers_0"),
        an_instance("workers_1", latestModelApplied=False),
        an_instance("workers_2", latestModelApplied=False),
        capacity=2,
        model={"generation": 2, "terminateNotice": "PT10M", "reimageNotice": "PT15M"},
    )
    text = drawn(*fleet_page([web, workers]))
    assert "MODEL" in text
    assert "3, 1 going" in text
    assert "notice 10 min, reimage 15 min, 2 behind" in text


def test_a_change_of_power_is_called_what_was_asked_for() -> None:
    event = an_event(type="Power", operation="stop", announced=False)
    assert "Stop of web-0" in drawn(*event_page(event, NOW))
    assert "Stop" in drawn(events_table([event], NOW, empty=""))
    assert progress({**event, "phase": "completed"}, NOW) == "Stop of web-0: completed"


def test_scopes_of_one_name_keep_their_whole_ids() -> None:
    names = short_scopes([WEB, "sub/other/availability-set/web", "sub/group/scale-set/w/0"])
    assert names[WEB] == WEB
    assert names["sub/group/scale-set/w/0"] == "scale-set/w/0"


def test_changes_are_signed_and_name_the_events_that_they_end() -> None:
    changes: list[dict[str, Any]] = [
        {"action": "add", "what": "instance web-3", "scope": WEB, "detail": "", "events": []},
        {"action": "change", "what": "instance web-0", "scope": WEB, "detail": "a → b"},
        {"action": "remove", "what": "instance web-1", "scope": WEB, "events": [ID]},
    ]
    text = drawn(changes_list(changes))
    assert [line[:1] for line in text.splitlines()] == ["+", "~", "-", " "]
    assert "a → b" in text
    assert f"cancels event {ID}" in text
    assert changes_summary(changes) == "1 added, 1 changed, 1 removed"


def test_a_rollout_tells_estimates_from_facts() -> None:
    text = drawn(*rollout_page(ROLLOUT, NOW))
    assert "1 of 3 done, 1 announced" in text
    assert "the whole fleet" in text
    assert "sat,sun 01:00-05:00 Europe/Berlin" in text
    assert "10 min" in text
    assert sum("~ " in line for line in text.splitlines()) == 1
    assert "Times are in Europe/Berlin." in text
    assert "13:15:00" in text, "12:15 in UTC"


def test_a_plan_is_in_the_asked_time_zone() -> None:
    steps = [{**WAITING, "notBefore": "2026-11-17T12:15:00Z"}]
    plan = {"steps": steps, "ends": "2026-11-16T13:00:00Z", "warnings": []}
    text = drawn(*plan_page(plan, NOW, ZoneInfo("Asia/Tokyo")))
    assert "~ 17 Nov 21:15" in text
    assert "22:00:00 JST" in text


def test_an_event_that_is_over_counts_down_no_more() -> None:
    over = an_event(phase="completed", notBefore="2026-11-16T12:14:00Z")
    for text in (drawn(*event_page(over, NOW)), drawn(events_table([over], NOW, empty=""))):
        assert "in 14 min" not in text
    assert "in 14 min" in drawn(*event_page({**over, "phase": "scheduled"}, NOW))


def test_no_terminal_is_too_wide_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "240")
    assert make_console(is_capped=True).width == WIDTH_MAX
    monkeypatch.setenv("COLUMNS", "80")
    assert make_console(is_capped=True).width == 80


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_plan_shows_its_warnings_and_its_end() -> None:
    plan = {"steps": [WAITING], "ends": "2026-11-16T13:00:00Z", "warnings": ["no window fits"]}
    text = drawn(*plan_page(plan, NOW))
    assert "warning: no window fits" in text
    assert "in 1 h" in text
    assert "nothing to do" in drawn(*plan_page({"steps": [], "ends": None}, NOW))


def test_tokens_and_notifications() -> None:
    assert "never" in drawn(tokens_table([TOKEN], NOW))
    assert "Started of Reboot in web" in drawn(notifications_table([NOTIFICATION], NOW))
    assert "refused" in drawn(letters_table([LETTER]))


def test_many_names_are_counted() -> None:
    assert several(["a", "b"]) == "a, b"
    assert several(list("abcdef")) == "a, b, c, d and 2 more"


def test_the_progress_of_a_wait() -> None:
    assert progress(an_event(), NOW) == "Reboot of web-0: scheduled, starts in 15:00 at latest"
    assert "waits for its turn" in progress(an_event(notBefore="2026-11-16T11:00:00Z"), NOW)
    started = an_event(phase="started", started="2026-11-16T11:59:30Z")
    assert progress(started, NOW) == "Reboot of web-0: under way for 30 s"


def test_the_end_of_a_wait_says_where_to_look() -> None:
    assert f"fairwarning event show {ID}" in ending(an_event(phase="failed", outcome="no disk"))
    postponed = an_event(phase="cancelled", outcome="postponed", replacedBy=OTHER_ID)
    assert f"fairwarning event show {OTHER_ID}" in ending(postponed)
