"""Command lines that work as pasted, times in the reader's zone, and a timeline in its order."""

from zoneinfo import ZoneInfo

import pytest

from fairwarning.operator_api.schemas import Entry
from fairwarning.operator_api.to_schema import event_of
from fairwarning.portal import shell_commands
from fairwarning.portal.pages.events import name_of, steps
from fairwarning.portal.time_zones import local, rfc3339_of, with_local_times, zone_of
from tests.portal.test_timeline import event

POLL = "/metadata/scheduledevents?api-version=2020-07-01"


def test_on_loopback_anybody_may_ask_as_any_instance() -> None:
    urls = ["http://10.0.0.1:8169", "http://127.0.0.1:8169"]
    found = shell_commands.curl(urls, "portal.example", "web-0", "2020-07-01")
    assert found == f"curl -H Metadata:true 'http://127.0.0.1:8169/vm/web-0{POLL}'"
    assert shell_commands.can_play(urls)


def test_elsewhere_an_instance_asks_for_itself() -> None:
    found = shell_commands.curl(["http://10.0.0.1:8169"], "portal.example", "web-0", "2020-07-01")
    assert found == f"curl -H Metadata:true 'http://10.0.0.1:8169{POLL}'"
    assert not shell_commands.can_play(["http://10.0.0.1:8169"])


def test_a_listener_on_every_address_is_asked_where_the_reader_found_us() -> None:
    found = shell_commands.curl(["http://0.0.0.0:8169"], "fw.example", "web-0", "2020-07-01")
    assert "http://fw.example:8169/metadata" in found
    found = shell_commands.curl(["http://[::]:8169"], "2001:db8::1", "web-0", "2020-07-01")
    assert "http://[2001:db8::1]:8169/metadata" in found


def test_a_name_cannot_leave_its_place_in_a_command() -> None:
    found = shell_commands.curl(["http://127.0.0.1:1"], "h", "a'; rm -rf /", "2020-07-01")
    assert "rm -rf" not in found
    assert shell_commands.program("http://127.0.0.1:8170", "schedule", "a'; b").endswith(
        "'a'\"'\"'; b'"
    )


def test_the_program_is_told_where_the_server_is_unless_it_knows() -> None:
    assert shell_commands.program("http://127.0.0.1:8170", "watch") == "fairwarning watch"
    found = shell_commands.program("http://127.0.0.1:9999", "watch")
    assert found == "FAIRWARNING_URL=http://127.0.0.1:9999 fairwarning watch"


@pytest.mark.parametrize(
    "name", [None, "", "Nowhere/City", "../../etc/passwd", "/etc/passwd", "a\0b", "x" * 500]
)
def test_an_unknown_zone_is_utc(name: str | None) -> None:
    assert zone_of(name).key == "UTC"


def test_times_are_read_and_said_in_the_readers_zone() -> None:
    berlin = zone_of("Europe/Berlin")
    assert local("2026-11-16T09:30:00.000Z", berlin) == "Mon 16 Nov 2026, 10:30:00 CET"
    assert rfc3339_of("2026-11-16T10:30", berlin) == "2026-11-16T09:30:00Z"
    assert rfc3339_of("2026-07-16T10:30", berlin) == "2026-07-16T08:30:00Z"
    assert rfc3339_of("2026-11-16T10:30", ZoneInfo("UTC")) == "2026-11-16T10:30:00Z"
    assert rfc3339_of("tomorrow", berlin) is None


def test_a_sentence_of_the_journal_has_its_times_in_the_readers_zone() -> None:
    said = "Freeze of db announced for 2026-11-18 23:28:53 UTC"
    found = with_local_times(said, zone_of("Europe/Berlin"))
    assert found == "Freeze of db announced for Thu 19 Nov 2026, 00:28:53 CET"
    assert with_local_times("started (approved)", zone_of("UTC")) == "started (approved)"


def entry(kind: str, second: int, *, why: str = "", by: str = "operator:ada", **data: str) -> Entry:
    at = f"2026-11-16T09:30:{second:02}.000Z"
    return Entry(
        position="1", at=at, scope="s", event="E", kind=kind, by=by, why=why, text="", data=data
    )


def test_a_lease_that_is_renewed_again_and_again_is_one_step() -> None:
    found = event_of(*event())
    found.timeline = [
        entry("Started", 0, cause="due"),
        *(entry("LeaseRenewed", n, by="engine:engine") for n in (10, 20, 30)),
        entry("Completed", 40),
    ]
    told = steps(found)
    assert [each.kind for each in told] == ["Started", "LeaseRenewed", "Completed"]
    assert (told[1].repeats, told[1].at[-7:-5], told[1].until[-7:-5]) == (3, "10", "30")


def test_the_reason_for_a_commit_is_told_once() -> None:
    found = event_of(*event())
    found.timeline = [
        entry("Approved", 5, why="drained"),
        entry("Started", 5, why="drained", cause="approved"),
        entry("Cancelled", 9, why="drained"),
    ]
    assert [each.why for each in steps(found)] == ["drained", "", "drained"]


def test_what_the_scope_did_is_no_part_of_the_events_story() -> None:
    found = event_of(*event())
    found.timeline = [entry("DocumentChanged", 1), entry("Seen", 2, name="web-0")]
    assert [(each.kind, each.name) for each in steps(found)] == [("Seen", "web-0")]


def test_a_hook_is_a_step_with_its_output() -> None:
    found = event_of(*event())
    done = entry("HookFinished", 1, stage="before", number="1", name="alarm off", output="ok")
    failed = entry("HookFinished", 2, stage="after", number="2", result="exit code 1")
    failed.data = {**failed.data, "is_done": False}
    ended = entry("ImpactEnded", 3, outcome="failed", reason="no")
    found.timeline = [done, failed, ended]
    first, second, third = steps(found)
    assert (first.tone, first.variant, first.stage, first.name) == (
        "good",
        "",
        "before",
        "alarm off",
    )
    assert first.output == "ok"
    assert (second.tone, second.variant, second.reason) == ("bad", "-failed", "exit code 1")
    assert (third.tone, third.variant, third.reason) == ("bad", "-failed", "no")


def test_the_engine_is_nobody() -> None:
    assert [name_of(by) for by in ("operator:ada", "instance:web-0", "engine:engine")] == [
        "ada",
        "web-0",
        "",
    ]
