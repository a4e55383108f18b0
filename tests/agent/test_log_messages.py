"""What the log says of actions: for people in words, for programs as a field of its own."""

import logging
from typing import Any

import pytest

from fairwarning.agent.log_messages import log_failure, log_step, log_success
from fairwarning.agent.model import Action, Phase, Rule, Run
from fairwarning.agent.records import Memory, Place
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.steps import Adopt, CutOff, Do, Release, Skip, Step, Undo
from fairwarning.client.changes import Seen
from tests.agent.values import ME, NOW, config, event

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
