"""`agent test`: a made-up event through the actions."""

import logging
from dataclasses import replace

import pytest

from fairwarning.agent.config.model import Rule
from fairwarning.agent.self_test import made_up, play
from tests.agent.values import ME, World, action, config

RULE = Rule(
    name="r",
    scheduled=(action("a"), action("b")),
    started=(action("s"),),
    finished=(action("f", has_undo=False),),
    cancelled=(action("c", has_undo=False),),
)


@pytest.mark.parametrize(
    ("is_cancelled", "history"),
    [
        (False, ["a", "b", "s", "uns", "unb", "una", "f"]),
        (True, ["a", "b", "unb", "una", "c"]),
    ],
)
async def test_every_action_is_run_and_undone(is_cancelled: bool, history: list[str]) -> None:
    world = World()
    event = made_up("Reboot", "web-0")
    report = await play(config(RULE), ME, event, lambda _: world, is_cancelled=is_cancelled)
    assert world.history == history
    assert report.problems == ()


async def test_what_did_not_work_is_told_also_if_it_was_undone() -> None:
    world = World()
    world.failing = {"a", "unb", "f"}
    rule = replace(RULE, scheduled=(action("b"), action("a")))
    report = await play(config(rule), ME, made_up("Reboot", "web-0"), lambda _: world)
    assert report.problems == (
        "scheduled: run a: a does not work",
        "scheduled: run b: unb does not work",
        "finished: run f: f does not work",
    )


async def test_it_does_not_say_that_it_approves(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await play(config(RULE), ME, made_up("Reboot", "web-0"), lambda _: World())
    said = [each.message for each in caplog.records]
    assert "done: run a" in said, "the actions are real"
    assert [each for each in said if "approv" in each] == ["here the agent would approve"]
