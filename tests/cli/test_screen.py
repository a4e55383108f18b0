"""The live screen, as lines."""

from datetime import timedelta

import pytest

from fairwarning.cli.live_screen.screen import (
    ENTRIES_MAX,
    Line,
    ScreenState,
    by_urgency,
    domains,
    instance_states,
    screen,
    short_ids,
    with_entries,
    with_scope,
)
from fairwarning.cli.table_model import Cell
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

SCOPE = a_scope(
    WEB,
    an_instance("web-0"),
    an_instance("web-1", 1),
    an_instance("web-2", 1, power="stopped"),
)
SEEN = ScreenState(scopes=(SCOPE,), events=(an_event(),), entries=(an_entry(),))


def text(line: Line) -> str:
    return "".join(cell.text for cell in line)


def shown(seen: ScreenState, width: int = 80, height: int = 24, **more: bool) -> list[str]:
    lines = screen(seen, "http://here", NOW, width=width, height=height, **more)
    return [text(line) for line in lines]


def test_it_shows_domains_events_and_the_timeline() -> None:
    lines = shown(SEEN)
    assert any("availability-set/web" in line and "0 ◆" in line and "1 ■□" in line
               for line in lines)  # fmt: skip
    assert any(ID[:8] in line and "15:00" in line and "web-0" in line for line in lines)
    assert any("Reboot of web-0 is scheduled" in line for line in lines)
    assert "connected" in lines[0]
    assert "q quits" in lines[-1]


def test_a_started_event_outranks_an_announced_one() -> None:
    events = [an_event(phase="started"), an_event(id=OTHER_ID, resources=["web-0", "web-1"])]
    assert instance_states(SCOPE, events) == {
        "web-0": "started",
        "web-1": "scheduled",
        "web-2": "stopped",
    }
    assert domains(SCOPE, events) == [(0, ["started"]), (1, ["scheduled", "stopped"])]


def test_states_differ_without_colour_and_without_unicode() -> None:
    lines = shown(SEEN, unicode=False)
    assert any("0 !" in line and "1 #-" in line for line in lines)
    assert all(line.isascii() for line in lines)


def test_scopes_with_impact_come_first() -> None:
    quiet, announced = a_scope("s/g/vm/a", an_instance("a")), SCOPE
    struck = a_scope("s/g/vm/z", an_instance("z"))
    events = (an_event(), an_event(scope="s/g/vm/z", resources=["z"], phase="started"))
    seen = ScreenState(scopes=(quiet, announced, struck), events=events)
    assert by_urgency(seen) == [struck, announced, quiet]


def test_a_lost_connection_is_told() -> None:
    lines = shown(ScreenState(scopes=(SCOPE,), lost="refused"))
    assert "connection lost" in lines[0]
    assert "refused" in lines[0]


@pytest.mark.parametrize("height", [1, 2, 5, 8, 24, 60])
@pytest.mark.parametrize("width", [20, 80, 200])
def test_it_fits_whatever_there_is(width: int, height: int) -> None:
    crowd = [an_instance(f"w-{n:03}", n % 5) for n in range(100)]
    seen = ScreenState(
        scopes=tuple(a_scope(f"s/g/scale-set/w/{n}", *crowd) for n in range(40)),
        events=tuple(an_event(id=f"{n:08}") for n in range(40)),
        entries=tuple(an_entry(position=str(n)) for n in range(40)),
    )
    lines = shown(seen, width, height)
    assert len(lines) <= height
    if height == 24:
        assert any("more event" in line for line in lines)
        assert any("more line" in line for line in lines)


def test_a_large_scope_takes_as_many_lines_as_it_needs() -> None:
    crowd = [an_instance(f"w-{n:03}", n % 5) for n in range(100)]
    lines = shown(ScreenState(scopes=(a_scope(WEB, *crowd),)), 60, 40)
    assert sum(line.count("■") for line in lines) == 100 + 1
    assert all(len(line) <= 60 for line in lines if "■" in line and "running" not in line)


def test_short_ids_stay_different() -> None:
    assert short_ids([ID]) == {ID: ID[:8]}
    assert short_ids(["602D9444-AAA", "602D9444-AAB"]) == {
        "602D9444-AAA": "602D9444-AAA",
        "602D9444-AAB": "602D9444-AAB",
    }
    assert any(ID in line for line in shown(SEEN, width=120))


def test_entries_come_once_and_old_ones_go() -> None:
    seen = with_entries(SEEN, [an_entry(), an_entry(position="8")])
    assert [entry["position"] for entry in seen.entries] == ["7", "8"]
    many = with_entries(seen, [an_entry(position=f"x{n}") for n in range(100)])
    assert len(many.entries) == ENTRIES_MAX


def test_a_scope_is_replaced_added_and_removed() -> None:
    other = a_scope("s/g/vm/a", an_instance("a"))
    both = with_scope(SEEN, "s/g/vm/a", other)
    assert both.scopes == (other, SCOPE)
    assert with_scope(both, WEB, None).scopes == (other,)


def test_the_countdown_runs() -> None:
    later = screen(SEEN, "u", NOW + timedelta(seconds=61), width=80, height=24)
    assert any("13:59" in text(line) for line in later)


def test_styles_are_names_that_the_terminal_knows() -> None:
    from rich.style import Style

    for line in screen(SEEN, "u", NOW, width=80, height=24):
        for cell in line:
            assert isinstance(cell, Cell)
            Style.parse(cell.style)


def test_without_a_fleet_it_says_how_to_declare_one() -> None:
    lines = shown(ScreenState(scopes=(), events=(), entries=()))
    assert any("no scopes; declare some with `fairwarning fleet apply FILE`" in x for x in lines)


def test_what_has_started_counts_down_no_more_and_comes_first() -> None:
    later = an_event(id=OTHER_ID, phase="started")
    lines = [
        each
        for each in shown(ScreenState(scopes=(SCOPE,), events=(an_event(), later), entries=()))
        if "Reboot" in each
    ]
    assert "under way" in lines[0]
    assert "under way" not in lines[1]
