"""The lines of the agent's log: for people, and for programs."""

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fairwarning.agent import logs
from fairwarning.agent.config.model import Action, Phase, Rule, Run
from fairwarning.agent.logs import log_failure, log_step, log_success
from fairwarning.agent.records import Memory, Place
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.steps import Adopt, CutOff, Do, Release, Skip, Step, Undo
from fairwarning.client.changes import Seen
from tests.agent.values import ME, NOW, config, event


@pytest.fixture(autouse=True)
def the_root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def line(form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    logs.set_up(form)
    (handler,) = logging.getLogger().handlers
    try:
        raise OSError("it broke")
    except OSError:
        record = logging.LogRecord("x", logging.WARNING, "", 0, "a\nb", (), sys.exc_info())
    record.created = 1_767_225_600.25
    record.fields = {"event": "E1", "at": logging}
    return handler.format(record)


def test_json_has_the_time_the_fields_and_the_exception(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(line("json", monkeypatch, capsys))
    assert found["time"] == "2026-01-01T00:00:00.250Z"
    assert (found["level"], found["message"], found["event"]) == ("warning", "a\nb", "E1")
    assert "OSError: it broke" in found["exception"]


def test_people_read_one_line_and_then_the_exception(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *rest = line("human", monkeypatch, capsys).splitlines()
    assert first == "2026-01-01T00:00:00.250Z WARNING a\\nb"
    assert rest[-1] == "OSError: it broke"


def test_a_level_leaves_out_what_is_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "warning")
    logs.say("not this")
    logs.warn("but this", event="E1")
    assert [json.loads(each)["message"] for each in capsys.readouterr().err.splitlines()] == [
        "but this"
    ]


DRAIN = Action(
    settings=Run(command=("drain", "{me}", "{event.type}", "{time_left}")),
    undo=Run(command=("undrain", "{me}")),
)
PLACE = Place(event_id="E1", phase=Phase.SCHEDULED, index=0)
TITLE = "run drain web-0 Reboot {time_left}"


@pytest.fixture
def memory() -> Memory:
    rule = Rule(name="r", scheduled=(DRAIN,))
    return update_events(Memory(), Seen(events={"E1": event()}), config(rule), ME, NOW)[0]


def only(caplog: pytest.LogCaptureFixture) -> tuple[str, dict[str, Any]]:
    (record,) = caplog.records
    return record.message, vars(record)["fields"]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Do(place=PLACE), f"doing: {TITLE}"),
        (Undo(place=PLACE), f"undoing: {TITLE}, by run undrain web-0"),
        (Adopt(place=PLACE), f"done already, for another event: {TITLE}"),
        (Release(place=PLACE), f"not undone yet, as another event needs it: {TITLE}"),
        (Skip(place=PLACE, why="no time"), f"left out: {TITLE} (no time)"),
        (CutOff(place=PLACE, why="no time"), f"cut off: {TITLE} (no time)"),
    ],
)
def test_each_step_names_its_action_with_the_values_of_the_event(
    step: Step, said: str, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log_step(step, memory, ME)
    assert only(caplog) == (said, {"event": "E1", "action": TITLE})


def test_so_does_what_came_of_it(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log_success(Do(place=PLACE), memory, ME)
    assert only(caplog) == (f"done: {TITLE}", {"event": "E1", "action": TITLE})
    caplog.clear()
    log_failure(Undo(place=PLACE), memory, ME, "it broke")
    said = f"could not be undone: {TITLE} (it broke); trying again later"
    assert only(caplog) == (said, {"event": "E1", "action": TITLE})
