"""One step of work, carried out: what an attempt leaves for the next one."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fairwarning.agent import execute, state_changes
from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.approval import AGAIN_S_MAX
from fairwarning.agent.client import AgentClient, NotFairwarning
from fairwarning.agent.clock import Clock
from fairwarning.agent.config.model import Action, Approve, Hold, Peers, Phase, Rule
from fairwarning.agent.execute import Failed, StepExecutor
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.records import Memory, Place
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.steps import AskPeers, CheckHold, Do, Report
from fairwarning.client.changes import Seen
from tests.agent.values import ME, NOW, action, config, event

PLACE = Place(event_id="E1", phase=Phase.SCHEDULED, index=0)


class Switch:
    """Keeps what was before it changes anything, as all do; the first attempt fails after that."""

    def __init__(self) -> None:
        self.state = "up"

    async def do(self, action: Action, context: Context) -> None:
        if "was" not in (context.kept or {}):
            context.keep("was", self.state)
        was, self.state = self.state, "down"
        if was == "up":
            raise ActionFailed("not this time")

    async def undo(self, action: Action, context: Context) -> None:
        raise AssertionError("nothing is undone here")


def hasty() -> Callable[[], datetime]:
    """A clock by which every pause is over at once."""
    reads = iter(range(1_000))
    return lambda: NOW + timedelta(seconds=10 * next(reads))


async def test_a_second_attempt_does_not_keep_what_the_first_has_left() -> None:
    rule = Rule(name="r", scheduled=(action("a", retries=1),))
    memory, _ = update_events(Memory(), Seen(events={"E1": event()}), config(rule), ME, NOW)
    kept: list[Memory] = [state_changes.begin_step(memory, Do(place=PLACE))]
    switch = Switch()
    metrics = Metrics()
    executor = StepExecutor(
        me=ME,
        service=AgentClient("http://127.0.0.1:1", seen=Seen(), metrics=metrics),
        clock=Clock(hasty()),
        handler_of=lambda _: switch,
        metrics=metrics,
    )
    await executor.execute(
        Do(place=PLACE),
        kept[0],
        lambda name, value: kept.append(state_changes.keep_value(kept[-1], PLACE, name, value)),
    )
    assert switch.state == "down"
    assert kept[-1].kept == {memory.key(PLACE): {"was": "up"}}


class Azure:
    """Knows nothing of who is ready, and counts how often it is asked to approve."""

    async def report(self, event_id: str) -> tuple[str, ...]:
        raise NotFairwarning

    async def waiting(self, event_id: str) -> tuple[str, ...]:
        raise NotFairwarning

    async def approve(self, *event_ids: str) -> None:
        raise AssertionError("nothing is approved here")


def memory_of(approve: Approve) -> Memory:
    rule = Rule(name="r", approve=approve)
    memory, _ = update_events(Memory(), Seen(events={"E1": event()}), config(rule), ME, NOW)
    return memory


def asking(now: Callable[[], datetime] = lambda: NOW) -> StepExecutor:
    return StepExecutor(
        me=ME,
        service=Azure(),
        clock=Clock(now),
        handler_of=lambda _: Switch(),
        metrics=Metrics(),
    )


async def test_a_record_that_is_forgotten_takes_its_file_for_the_peers_with_it(
    tmp_path: Path,
) -> None:
    memory = memory_of(Approve(peers=Peers(directory=str(tmp_path))))
    executor = asking()
    await executor.execute(Report(event_id="E1"), memory, lambda _, __: None)
    assert os.listdir(tmp_path / "E1") == ["web-0"]
    executor.forget(memory.records["E1"])
    assert os.listdir(tmp_path / "E1") == ["web-0"], "what was not reported is not its own"
    executor.forget(replace(memory.records["E1"], is_reported=True))
    assert os.listdir(tmp_path) == []


async def test_peers_that_cannot_be_asked_are_asked_again_after_growing_pauses(
    tmp_path: Path,
) -> None:
    memory = memory_of(Approve(peers=Peers(directory=str(tmp_path))))
    executor = asking()
    pauses: list[float] = []
    for _ in range(8):
        with pytest.raises(Failed, match="cannot be read"):
            await executor.execute(AskPeers(event_id="E1"), memory, lambda _, __: None)
        pauses.append((executor.not_again_before["E1"].at - NOW).total_seconds())
    assert pauses[:3] == [2, 4, 8]
    assert pauses[-2:] == [AGAIN_S_MAX, AGAIN_S_MAX]


@pytest.mark.parametrize(
    ("command", "why"),
    [(("/no/such/hold",), "cannot run '/no/such/hold'"), (("sleep", "1000"), "not done within")],
)
async def test_a_hold_that_gives_no_answer_holds(
    command: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "HOLD_S_MAX", 0.01)
    hold = Hold(command=command)
    memory = memory_of(Approve(hold=hold))
    executor = asking()
    await executor.execute(CheckHold(event_id="E1", hold=hold), memory, lambda _, __: None)
    (held,) = executor.holds["E1"].waiting
    assert why in held
