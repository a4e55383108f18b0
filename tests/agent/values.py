"""Events, rules and handlers that the tests of the agent are made of."""

import asyncio
from datetime import UTC, datetime, timedelta

from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.config.model import Action, Config, OnFailure, Rule, Run
from fairwarning.client.model import Event, Instance, Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ME = Instance(name="web-0", tags={"role": "front"})


def event(
    id: str = "E1",
    *,
    type: str = "Reboot",
    resources: tuple[str, ...] = ("web-0",),
    status: Status = Status.SCHEDULED,
    notice_s: float = 900,
    description: str = "",
    duration_s: int | None = None,
) -> Event:
    return Event(
        id=id,
        type=type,
        status=status,
        resources=resources,
        not_before=None if status is Status.STARTED else NOW + timedelta(seconds=notice_s),
        description=description,
        source="Platform",
        duration_s=duration_s,
    )


def action(
    name: str,
    *,
    on_failure: OnFailure = OnFailure.STOP,
    has_undo: bool = True,
    retries: int = 0,
    timeout_s: float = 300,
) -> Action:
    return Action(
        settings=Run(command=(name,)),
        undo=Run(command=(f"un{name}",)) if has_undo else None,
        on_failure=on_failure,
        retries=retries,
        timeout_s=timeout_s,
    )


def config(*rules: Rule, margin_s: float = 30) -> Config:
    return Config(rules=rules, margin_s=margin_s, listen=None)


class World:
    """What the actions change, and what they were asked. Things may be made to fail or hang."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.history: list[str] = []
        self.failing: set[str] = set()
        self.hanging: set[str] = set()

    async def do(self, action: Action, context: Context) -> None:
        name = _name(action)
        self.history.append(name)
        self.done.add(name)
        if name in self.hanging:
            await _for_ever()
        if name in self.failing:
            raise ActionFailed(f"{name} does not work")

    async def undo(self, action: Action, context: Context) -> None:
        name = _name(action)
        self.history.append(f"un{name}")
        if f"un{name}" in self.failing:
            raise ActionFailed(f"un{name} does not work")
        self.done.discard(name)


def _name(action: Action) -> str:
    assert isinstance(action.settings, Run)
    return action.settings.command[0]


async def _for_ever() -> None:
    await asyncio.Event().wait()


DRAIN = Rule(name="drain", scheduled=(action("a"), action("b")))
