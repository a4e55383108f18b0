"""What is recorded can be played: the same events, notices, starts and ends, at the same times."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fairwarning.client.polling import WAIT_S
from fairwarning.core.faults import FaultKind
from fairwarning.core.model import EventType
from fairwarning.scenarios.model import Approve, Cancel, ScenarioProblem, Schedule, SetFault
from fairwarning.scenarios.playback import read_playback
from fairwarning.scenarios.recorder import Recorder
from fairwarning.testing import Server

Json = dict[str, Any]
FOR_S = WAIT_S
"""No longer than a service would hold an answer, so that the recorder polls."""


class Vm:
    """Runs a recorder; each time that it would sleep, the next thing happens instead."""

    def __init__(self, server: Server, *happenings: Callable[[], object]) -> None:
        self.lines: list[Json] = []
        self._server = server
        self._happenings = [*happenings]
        self._s = 0.0

    def record(self, for_s: float | None = FOR_S) -> list[Json]:
        Recorder(
            self._server.vm("web-0").url,
            self.lines.append,
            seconds=lambda: self._s,
            sleep=self._sleep,
        ).run(for_s)
        return self.lines

    def _sleep(self, for_s: float) -> None:
        self._s += for_s
        if not self._happenings:
            raise KeyboardInterrupt
        self._happenings.pop(0)()


def kinds(lines: list[Json]) -> list[str]:
    return [each["kind"] for each in lines]


def test_each_changed_document_is_written_once_with_its_time(fairwarning: Server) -> None:
    vm = Vm(
        fairwarning,
        lambda: None,
        lambda: fairwarning.schedule("Freeze", "web-0", notice="15s"),
        lambda: None,
        lambda: fairwarning.advance(15),
    )
    with pytest.raises(KeyboardInterrupt):
        vm.record()
    assert kinds(vm.lines) == ["begin", "document", "document", "document", "end"]
    begin, empty, scheduled, started, _ = vm.lines
    assert begin["instance"] == "web-0"
    assert empty["document"] == {"DocumentIncarnation": 1, "Events": []}
    assert scheduled["document"]["Events"][0]["EventStatus"] == "Scheduled"
    assert started["document"]["Events"][0]["EventStatus"] == "Started"
    assert scheduled["version"] == "2020-07-01"
    assert [each["s"] for each in vm.lines] == sorted(each["s"] for each in vm.lines)


def test_an_outage_is_written_with_its_end(fairwarning: Server) -> None:
    vm = Vm(
        fairwarning,
        lambda: fairwarning.fault("status", "web-0", status=500, count=2),
        lambda: None,
        lambda: None,
        lambda: None,
    )
    with pytest.raises(KeyboardInterrupt):
        vm.record()
    assert kinds(vm.lines) == ["begin", "document", "outage", "back", "end"]
    assert "500" in vm.lines[2]["trouble"]


def test_an_outage_without_an_answer_has_no_date(fairwarning: Server) -> None:
    vm = Vm(fairwarning, lambda: fairwarning.fault("reset", "web-0"), fairwarning.clear_faults)
    with pytest.raises(KeyboardInterrupt):
        vm.record()
    assert kinds(vm.lines) == ["begin", "document", "outage", "back", "end"]
    assert [each["date"] is None for each in vm.lines] == [False, False, True, False, False]


def test_it_ends_when_its_time_is_over(fairwarning: Server) -> None:
    vm = Vm(fairwarning, *[lambda: None] * 100)
    lines = vm.record(5)
    assert kinds(lines) == ["begin", "document", "end"]
    assert lines[-1]["s"] == pytest.approx(5)


def test_a_virtual_clock_is_played_back_by_its_own_distances(fairwarning: Server) -> None:
    """However many real seconds it took to record."""
    vm = Vm(
        fairwarning,
        lambda: fairwarning.advance(minutes=2),
        lambda: fairwarning.schedule("Reboot", "web-0", duration="5m", notice="15m"),
        lambda: fairwarning.advance(minutes=15),
        lambda: fairwarning.advance(minutes=5),
        lambda: fairwarning.advance(minutes=3),
    )
    with pytest.raises(KeyboardInterrupt):
        vm.record()
    scenario = read_playback("\n".join(map(json.dumps, vm.lines)))
    announced, end = scenario.steps
    assert isinstance(announced.action, Schedule)
    assert announced.at_ms == 120_000
    assert (announced.action.notice_ms, announced.action.lasts_ms) == (900_000, 300_000)
    assert end.at_ms == (2 + 15 + 5 + 3) * 60_000


def a_line(kind: str, s: float, **more: Any) -> str:
    minutes, seconds = divmod(s, 60)
    at = f"2026-03-01T10:{int(minutes):02}:{seconds:06.3f}Z"
    return json.dumps({"kind": kind, "at": at, "s": s, **more})


def a_document(s: float, *events: Json) -> str:
    return a_line("document", s, version="2020-07-01",
                  document={"DocumentIncarnation": 1, "Events": [*events]})  # fmt: skip


def an_event(status: str = "Scheduled", id: str = "A", **more: Any) -> Json:
    return {
        "EventId": id,
        "EventStatus": status,
        "EventType": "Reboot",
        "Resources": ["vm_0", "vm_1"],
        "NotBefore": "Sun, 01 Mar 2026 10:15:10 GMT" if status == "Scheduled" else "",
        "Description": "Host server is undergoing maintenance.",
        "DurationInSeconds": 9,
        **more,
    }


BEGIN = a_line("begin", 0, endpoint="http://x", instance="vm_2")


def steps(*lines: str) -> list[tuple[int, Any]]:
    scenario = read_playback("\n".join([BEGIN, *lines]))
    return [(each.at_ms // 1000, each.action) for each in scenario.steps if each.action]


def test_an_approved_event_starts_and_ends_as_recorded() -> None:
    found = steps(
        a_document(0.1),
        a_document(10.2, an_event()),
        a_document(70.9, an_event("Started")),
        a_document(400.0),
    )
    announced = Schedule(
        type=EventType.REBOOT, targets=("vm_0", "vm_1"), notice_ms=900_000, duration_ms=9_000,
        lasts_ms=330_000, description="Host server is undergoing maintenance.",
    )  # fmt: skip
    assert found == [(10, announced), (70, Approve(event="A"))]


def test_an_event_that_waited_starts_by_itself_and_still_ends_in_time() -> None:
    found = steps(
        a_document(10.2, an_event()), a_document(912, an_event("Started")), a_document(1_210.0)
    )
    ((at_s, action),) = found
    assert (at_s, action.notice_ms, action.lasts_ms) == (10, 900_000, 300_000)


def test_a_cancelled_event_is_cancelled() -> None:
    found = steps(a_document(10.2, an_event()), a_document(480.0))
    assert found[-1] == (480, Cancel(event="A", reason="as recorded"))


def test_an_event_that_is_gone_at_its_time_has_happened_and_was_not_cancelled() -> None:
    found = steps(a_document(10, an_event()), a_document(910))
    assert not [action for _, action in found if isinstance(action, Cancel)]


def test_a_failure_has_happened_already() -> None:
    ((at_s, action),) = steps(a_document(3, an_event("Started")), a_document(63))
    assert (at_s, action.already_happened, action.notice_ms) == (3, True, None)
    assert action.lasts_ms == 60_000


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ("the service answered 429", FaultKind.STATUS),
        ("the service answered 418", FaultKind.STATUS),
        ("the answer is empty", FaultKind.EMPTY),
        ("no answer within 10 s", FaultKind.RESET),
    ],
)
def test_an_outage_is_a_fault_for_as_long(trouble: str, kind: FaultKind) -> None:
    found = steps(
        a_document(1, an_event("Started")),
        a_line("outage", 20, trouble=trouble),
        a_line("back", 50),
        a_document(60),
    )
    at_s, action = found[1]
    assert isinstance(action, SetFault)
    assert (at_s, action.kind, action.more["for"]) == (20, kind, "PT30S")
    # A status that no fault can have is played as one that it can have.
    known = 429 if "429" in trouble else 503
    assert action.more.get("status") == (known if kind is FaultKind.STATUS else None)


def test_a_recorder_that_was_started_again_goes_on_in_the_same_file() -> None:
    again = json.dumps({"kind": "begin", "at": "2026-03-01T10:10:00Z", "s": 0})
    found = steps(a_document(10.2, an_event()), again, a_document(5, an_event("Started")))
    assert found[1] == (605, Approve(event="A"))


def dated(line: str, clock: str) -> str:
    return json.dumps({**json.loads(line), "date": f"2030-01-01T{clock}Z"})


def test_a_clock_that_stands_still_keeps_an_outage_between_its_answers() -> None:
    """Nobody says how late it is while nobody answers."""
    found = steps(
        dated(a_document(1, an_event("Started")), "08:00:00"),
        a_line("outage", 20, trouble="no answer"),
        dated(a_line("back", 50), "08:00:10"),
        dated(a_document(60), "09:00:00"),
    )
    (_, failure), (at_s, fault) = found
    assert failure.lasts_ms == 3_600_000
    assert (at_s, fault.more["for"]) == (11, "PT1S")


def test_a_clock_that_was_set_back_goes_on_from_where_it_was() -> None:
    found = steps(
        dated(a_document(0, an_event("Started")), "08:00:00"),
        dated(a_document(10, an_event("Started"), an_event("Started", "B")), "07:00:00"),
        dated(a_document(20), "07:30:00"),
    )
    assert [(at_s, action.lasts_ms // 1000) for at_s, action in found] == [(0, 1_810), (10, 1_800)]


def test_a_last_line_that_was_cut_off_is_left_out() -> None:
    found = steps(a_document(10.2, an_event()), a_document(480.0), '{"kind": "docum')
    assert len(found) == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [("", 1), ("{}", 1), (f"{BEGIN}\nhello\n{a_document(1)}", 2), (a_document(1), 1)],
)
def test_what_is_no_recording_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ScenarioProblem) as refused:
        read_playback(text)
    assert refused.value.mistakes[0].line == line


def test_a_recording_in_which_nothing_happened_cannot_be_played() -> None:
    with pytest.raises(ScenarioProblem, match="record for longer"):
        read_playback(f"{BEGIN}\n{a_document(1)}")
