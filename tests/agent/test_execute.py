"""One step of work, carried out: what an attempt leaves for the next one."""

from collections.abc import Callable
from datetime import datetime, timedelta

from fairwarning.agent import state_changes
from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.clock import Clock
from fairwarning.agent.execute import StepExecutor
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.model import Action, Phase, Rule
from fairwarning.agent.records import Memory, Place
from fairwarning.agent.service import Service
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.steps import Do
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
        service=Service("http://127.0.0.1:1", seen=Seen(), metrics=metrics),
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
