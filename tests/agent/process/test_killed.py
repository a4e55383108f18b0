"""kill -9 of the real agent, at any point of a scenario, ends in the same final state."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwarning.testing import server as serving
from tests.agent.process.scenarios import SCENARIOS, VM, Agents, Doom, Play

ENDS: dict[str, dict[str, object]] = {
    "finished": {
        "marks": {"told-finished"},
        "phase": "completed",
        "approved by": [f"instance:{VM}"],
    },
    "cancelled": {"marks": {"told-cancelled"}, "phase": "cancelled"},
}


@pytest.fixture(scope="module")
def agents() -> Iterator[Agents]:
    with Agents() as running:
        yield running


def deaths(name: str, agents: Agents, folder: Path, doom: Doom) -> int:
    """Plays a scenario and compares its end; returns how often the agent was killed in it."""
    with serving(fleet={"vm": [{"name": VM}], "test": True}) as server:
        play = Play(server, agents, folder, doom, approves=name == "finished")
        assert SCENARIOS[name](server, play) == ENDS[name], doom
    return play.killed


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_story_itself(name: str, agents: Agents, tmp_path: Path) -> None:
    assert deaths(name, agents, tmp_path / "scenario", Doom()) == 0


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_around_any_write_of_its_state(
    name: str, when: str, agents: Agents, tmp_path: Path
) -> None:
    number = total = 0
    while killed := deaths(
        name, agents, tmp_path / f"{number}", Doom(when=when, number=number + 1)
    ):
        number += 1
        total += killed
    assert total >= 8, "there are not that few points"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("name", "actions"), [("finished", 7), ("cancelled", 5)])
def test_killed_in_the_middle_of_every_action(
    name: str, actions: int, when: str, agents: Agents, tmp_path: Path
) -> None:
    assert deaths(name, agents, tmp_path / "scenario", Doom(when=when, at_actions=True)) == actions
