"""A scenario file is read as it is meant, and a mistake is told with its line."""

import re
from pathlib import Path
from typing import Any

import pytest

from fairwarning.core.faults import FaultKind
from fairwarning.core.model import EventType, OperationKind
from fairwarning.scenarios import library
from fairwarning.scenarios.instance_mapping import instances_of, replace_instances
from fairwarning.scenarios.model import Expect, Operate, ScenarioProblem, Schedule
from fairwarning.scenarios.parse import STEPS_MAX, read_scenario
from fairwarning.scenarios.step_actions import ACTIONS, expectation, in_words

DOCS = Path(__file__).parents[2] / "docs"
GOOD = """\
title = "Two machines"

[fleet]
[[fleet.vm]]
name = "a"
[[fleet.vm]]
name = "b"

[[step]]
say = "It begins."
schedule = { type = "reboot", targets = "a", notice = "15m", lasts = "10m" }
as = "first"

[[step]]
after = "5m"
restart = "b"

[[step]]
after = "1m"
approve = "first"

[[step]]
at = "20m"
expect = { event = "first", phase = "completed", approved = "a" }
"""


def test_steps_come_at_their_times_and_with_their_actions() -> None:
    scenario = read_scenario(GOOD)
    assert [each.at_ms // 60_000 for each in scenario.steps] == [0, 5, 6, 20]
    assert [each.line for each in scenario.steps] == [9, 14, 18, 22]
    first, second, *_ = (each.action for each in scenario.steps)
    assert first == Schedule(
        type=EventType.REBOOT, targets=("a",), notice_ms=900_000, lasts_ms=600_000
    )
    assert second == Operate(kind=OperationKind.RESTART, instance="b")
    assert scenario.fleet is not None
    assert scenario.fleet["test"] is True


def test_others_can_play() -> None:
    scenario = read_scenario(GOOD)
    assert instances_of(scenario) == ("a", "b")
    others = replace_instances(scenario, {"a": "x", "b": "a"})
    assert instances_of(others) == ("x", "a")
    expected = others.steps[-1].action
    assert isinstance(expected, Expect)
    assert expected.approved == "x", "whoever plays is also expected to approve"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('title = "Two machines"', "", 1, "`title` is missing"),
        ('title = "Two machines"', "titel = 1", 1, "unknown key `titel`; did you mean `title`?"),
        ('name = "b"', 'name = "b"\ncolour = "red"', 8, "unknown key `colour`"),
        ('name = "b"', 'name = "a"', 7, "a"),
        ('say = "It begins."', "say = It begins", 10, "TOML"),
        ('say = "It begins."', "say = 3", 10, "string"),
        ('type = "reboot"', 'type = "Explode"', 11, "Explode"),
        ('targets = "a"', "targets = []", 11, "at least one"),
        ('notice = "15m"', 'notice = "soon"', 11, "duration"),
        ('notice = "15m"', 'notise = "15m"', 11, "did you mean `notice`"),
        ('type = "reboot"', 'typ = "reboot"', 11, "unknown key `typ`; did you mean `type`?"),
        ('targets = "a"', 'target = "a"', 11, "unknown key `target`; did you mean `targets`?"),
        ("schedule =", "shedule =", 11, "unknown key `shedule`; did you mean `schedule`?"),
        ('event = "first"', 'evnt = "first"', 24, "unknown key `evnt`; did you mean `event`?"),
        ('restart = "b"', 'restart = "b"\nreason = "x"', 17, "`reason` means nothing here"),
        ('restart = "b"', 'restart = "b"\nxyz = "x"', 17, "unknown key `xyz`; it may be"),
        ('after = "5m"', 'afther = "5m"', 15, "did you mean `after`"),
        ('restart = "b"', 'restart = "b"\ndelete = "b"', 17, "one thing"),
        ('restart = "b"', "restart = 5", 16, "string"),
        ('approve = "first"', 'approve = "fist"', 18, "did you mean `first`"),
        ('approve = "first"', 'approve = "first"\nas = "x"', 21, "nothing that could have a name"),
        ('restart = "b"', 'restart = "b"\nas = "first"', 17, "taken"),
        ('at = "20m"', 'at = "2m"', 23, "in order"),
        ('at = "20m"', 'at = "20m"\nafter = "1m"', 24, "the same"),
        ('phase = "completed"', 'phase = "done"', 24, "no phase"),
        ('phase = "completed", approved = "a"', 'within = "5s"', 24, "what to expect"),
        ('phase = "completed", approved = "a"', "phase = []", 24, "what to expect"),
        ('approved = "a"', "approved = 3", 24, "true, false or the name of an instance"),
        ('lasts = "10m"', "already-happened = true", 11, "what already happened has no notice"),
        ('targets = "a"', 'targets = ["a", 3]', 11, "a name that is no string"),
        ('restart = "b"', 'postpone = { event = "first" }', 16, "`notice` is missing"),
        ('restart = "b"', "clear-faults = false", 16, "can only be true"),
        ('restart = "b"', 'rollout = { type = "preempt", of = "a" }', 16, "preempt"),
        ('restart = "b"', 'fault = { kind = "fire" }', 16, "fire"),
        ('restart = "b"', "fault = 3", 16, "table"),
        ('restart = "b"', "expect = 3", 16, "table"),
        ('restart = "b"', "postpone = 3", 16, "table"),
        ('restart = "b"', "rollout = 3", 16, "table"),
        ('restart = "b"', 'expect = { rollout = "r", phase = "running" }', 14, "makes a rollout"),
    ],
)
def test_a_mistake_has_its_line(old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioProblem) as refused:
        read_scenario(GOOD.replace(old, new, 1))
    (mistake,) = refused.value.mistakes
    assert mistake.line == line
    assert words in mistake.message


def test_all_mistakes_are_reported_at_once_and_none_that_follows_from_another() -> None:
    text = GOOD.replace('type = "reboot"', 'type = "Explode"').replace('"5m"', '"soon"')
    text = text.replace('phase = "completed"', 'phase = "done"').replace("title", "titel")
    with pytest.raises(ScenarioProblem) as refused:
        read_scenario(text)
    assert [each.line for each in refused.value.mistakes] == [1, 11, 15, 24]


def test_a_file_without_steps_is_none() -> None:
    with pytest.raises(ScenarioProblem, match=r"\[\[step\]\]"):
        read_scenario('title = "x"')


@pytest.mark.parametrize("name", library.names())
def test_a_scenario_of_the_library_says_what_it_is_about_and_checks_something(name: str) -> None:
    scenario = read_scenario(library.text(name))
    assert len(scenario.description) > 100
    assert instances_of(scenario)
    assert "expect" in library.text(name)


def test_the_pages_name_every_action_fault_and_scenario_and_their_example_is_right() -> None:
    page = (DOCS / "scenarios.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(read_scenario(example).steps) == 3
    assert all(f"`{each}" in page for each in (*ACTIONS, *library.names()))
    assert all(f"| `{each}` |" in (DOCS / "faults.md").read_text() for each in FaultKind)


def test_a_scenario_has_as_many_steps_as_anybody_could_watch() -> None:
    step = '[[step]]\nsay = "x"\n'
    assert len(read_scenario('title = "t"\n' + step * STEPS_MAX).steps) == STEPS_MAX
    with pytest.raises(ScenarioProblem, match=f"at most {STEPS_MAX} steps"):
        read_scenario('title = "t"\n' + step * (STEPS_MAX + 1))


def test_a_fleet_is_a_table() -> None:
    with pytest.raises(ScenarioProblem, match=r"begin it with \[fleet\]"):
        read_scenario('title = "t"\nfleet = 3\n[[step]]\nsay = "x"\n')


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ('schedule = { type = "reboot", targets = ["a", "b"] }', "schedule Reboot a b"),
        ('fault = { kind = "reset", instances = "a" }', "fault reset a"),
        ('fault = { kind = "reset" }', "fault reset"),
        ("clear-faults = true", "clear faults"),
        ('rollout = { type = "freeze", of = ["a", "b"] }', "rollout Freeze of a b"),
        ('redeploy = "a"', "redeploy a"),
        ('say = "x"', ""),
    ],
)
def test_an_action_is_told_in_words(action: str, words: str) -> None:
    (step,) = read_scenario(f'title = "t"\n[[step]]\n{action}\n').steps
    assert in_words(step.action) == words


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"phases": ("started", "failed")}, "e to be started or failed"),
        ({"approved": "a"}, "e approved by a"),
        ({"approved": True}, "e approved"),
        ({"approved": False}, "e approved by nobody"),
        ({"phases": ("started",), "approved": False}, "e to be started, approved by nobody"),
    ],
)
def test_an_expectation_is_told_in_words(expected: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"phases": (), "approved": None, "within_ms": 0, "is_rollout": False}
    action = Expect(name="e", **usual | expected)
    assert expectation(action) == words
    assert in_words(action) == f"expect {words}"
