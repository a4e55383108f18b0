"""A player does what the scenario says on a real server, and cleans up behind itself."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

import pytest

from fairwarning.cli.api_client import Api
from fairwarning.cli.scenario_run import HttpOperatorApi
from fairwarning.scenarios.clock_control import JumpingClock, Look
from fairwarning.scenarios.instance_mapping import instances_of
from fairwarning.scenarios.model import OperatorApi
from fairwarning.scenarios.parse import read_scenario
from fairwarning.scenarios.play import Player, ReportLine, StepFailed
from fairwarning.testing import Server


class Rehearsal:
    def __init__(self, operator: OperatorApi) -> None:
        self.operator = operator
        self.control: JumpingClock = JumpingClock(operator)
        self.told: list[ReportLine] = []

    def play(self, text: str) -> Player:
        scenario = read_scenario(f'title = "x"\n{text}')
        scopes = {
            name: self.operator.get("instances", name)["scope"] for name in instances_of(scenario)
        }
        player = self.player = Player(self.operator, self.control, self.told.append, scopes)
        player.play(scenario)
        return player

    def texts(self, kind: str) -> list[str]:
        return [each.text for each in self.told if each.kind == kind]


@pytest.fixture
def rehearsal(fairwarning: Server) -> Iterator[Rehearsal]:
    with closing(Api(fairwarning.control_url)) as api:
        yield Rehearsal(HttpOperatorApi(api, "a test"))


RESTART = """
[[step]]
restart = "web-0"
as = "reboot"
"""


def test_what_the_server_reports_is_told_once_and_at_its_own_time(
    rehearsal: Rehearsal, fairwarning: Server
) -> None:
    fairwarning.vm("web-0").document()
    rehearsal.play(f'{RESTART}\n[[step]]\nafter = "20m"\nsay = "Later."')
    reports = [each for each in rehearsal.told if each.kind == "report"]
    kinds = [each.data["kind"] for each in reports if each.data["event"]]
    assert kinds == ["Scheduled", "Started", "Completed"]
    started = next(each for each in reports if each.data["kind"] == "Started")
    assert started.since.total_seconds() == 15 * 60
    assert rehearsal.texts("step") == ["restart web-0", "Later."]
    assert rehearsal.texts("note") == []


def test_it_says_so_if_nobody_watches(rehearsal: Rehearsal) -> None:
    rehearsal.play(RESTART)
    assert "unannounced" in rehearsal.texts("note")[0]


def test_an_expectation_that_fails_is_counted_and_the_scenario_goes_on(
    rehearsal: Rehearsal, fairwarning: Server
) -> None:
    fairwarning.vm("web-0").document()
    player = rehearsal.play(
        f"""{RESTART}
[[step]]
after = "1m"
expect = {{ event = "reboot", phase = "completed" }}
[[step]]
expect = {{ event = "reboot", phase = "completed", within = "20m" }}
[[step]]
expect = {{ event = "reboot", approved = "web-0" }}
"""
    )
    assert player.unmet == 2
    assert rehearsal.texts("unmet") == [
        "expected reboot to be completed, but it is scheduled",
        "expected reboot approved by web-0, but it is completed, approved by nobody",
    ]
    assert player.pending() == []


def test_a_handler_that_is_faster_than_the_scenario_does_not_break_it(
    rehearsal: Rehearsal, fairwarning: Server
) -> None:
    vm = fairwarning.vm("web-0")
    vm.document()

    class Handled(JumpingClock):
        def until(self, target: datetime, look: Look) -> None:
            super().until(target, look)
            for each in vm.document()["Events"]:
                vm.approve(each["EventId"])

    rehearsal.control = Handled(rehearsal.operator)
    player = rehearsal.play(
        f"""{RESTART}
[[step]]
after = "4m"
approve = "reboot"
[[step]]
after = "1m"
expect = {{ event = "reboot", phase = "completed", approved = "web-0" }}
"""
    )
    assert player.unmet == 0
    assert "too late to approve reboot" in rehearsal.texts("note")[0]


def test_a_postponed_event_is_known_by_the_same_name(rehearsal: Rehearsal) -> None:
    player = rehearsal.play("""
[[step]]
schedule = { type = "Reboot", targets = "web-0" }
as = "reboot"
[[step]]
postpone = { event = "reboot", notice = "2h" }
[[step]]
after = "1h"
expect = { event = "reboot", phase = "scheduled" }
""")
    assert player.unmet == 0
    assert len(player.pending()) == 1


FAULTY = """
[[step]]
fault = { kind = "status", instances = "web-0", status = 500 }
[[step]]
after = "1m"
say = "And then?"
"""


def test_no_fault_outlives_the_scenario(rehearsal: Rehearsal, fairwarning: Server) -> None:
    kept = fairwarning.fault("empty", "db")
    rehearsal.play(FAULTY)
    assert [each["id"] for each in rehearsal.operator.get("faults")["faults"]] == [kept.id]


def test_a_fault_that_is_over_by_itself_keeps_no_other_from_being_cleared(
    rehearsal: Rehearsal,
) -> None:
    rehearsal.play("""
[[step]]
fault = { kind = "empty", instances = "db" }
[[step]]
fault = { kind = "status", instances = "web-0", status = 500, for = "10s" }
[[step]]
after = "1m"
say = "And then?"
""")
    assert rehearsal.operator.get("faults")["faults"] == []


def test_an_approval_may_be_expected_of_anybody_or_of_nobody(rehearsal: Rehearsal) -> None:
    player = rehearsal.play("""
[[step]]
schedule = { type = "Reboot", targets = "web-0", lasts = "1h" }
as = "reboot"
[[step]]
expect = { event = "reboot", approved = false }
[[step]]
expect = { event = "reboot", approved = true }
[[step]]
approve = "reboot"
[[step]]
expect = { event = "reboot", approved = true }
[[step]]
expect = { event = "reboot", approved = false }
""")
    kinds = [each.kind for each in rehearsal.told if each.kind in ("met", "unmet")]
    assert kinds == ["met", "unmet", "met", "unmet"]
    assert player.unmet == 2


def test_no_fault_outlives_a_scenario_that_is_stopped(rehearsal: Rehearsal) -> None:
    class Stopped(JumpingClock):
        def until(self, target: datetime, look: Look) -> None:
            if rehearsal.operator.get("faults")["faults"]:
                raise KeyboardInterrupt
            super().until(target, look)

    rehearsal.control = Stopped(rehearsal.operator)
    with pytest.raises(KeyboardInterrupt):
        rehearsal.play(FAULTY)
    assert rehearsal.operator.get("faults")["faults"] == []


def test_no_fault_outlives_a_scenario_that_is_stopped_while_it_sets_one(
    rehearsal: Rehearsal, fairwarning: Server
) -> None:
    """Its id was never heard of; still the faults of others stay."""
    kept = fairwarning.fault("empty", "db")

    class Cut(HttpOperatorApi):
        def post(self, *path: str, body: dict[str, object] | None = None) -> dict[str, object]:
            made = super().post(*path, body=body)
            if path == ("faults",):
                raise KeyboardInterrupt
            return made

    operator = rehearsal.operator
    assert isinstance(operator, HttpOperatorApi)
    rehearsal.operator = Cut(operator._api, "a test")
    with pytest.raises(KeyboardInterrupt):
        rehearsal.play(FAULTY)
    assert [each["id"] for each in operator.get("faults")["faults"]] == [kept.id]


def test_a_refusal_names_the_step(rehearsal: Rehearsal) -> None:
    with pytest.raises(StepFailed, match="only Spot instances") as failed:
        rehearsal.play('\n[[step]]\nsay = "x"\n[[step]]\nevict = "web-0"')
    assert failed.value.line == 5


def test_a_rollout_goes_through_the_scope_of_an_instance(rehearsal: Rehearsal) -> None:
    player = rehearsal.play("""
[[step]]
rollout = { type = "Freeze", of = "web-1", duration = "9s" }
as = "patches"
[[step]]
expect = { rollout = "patches", phase = "running" }
[[step]]
expect = { rollout = "patches", phase = "completed", within = "2h" }
""")
    assert player.unmet == 0
    started = [t for t in rehearsal.told if t.data.get("kind") == "Started"]
    assert len(started) == 3
