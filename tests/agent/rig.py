"""An agent in the test's own event loop, against a real server whose clock the test moves."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fairwarning.agent.actions.base import Context
from fairwarning.agent.client import AgentClient
from fairwarning.agent.clock import Clock
from fairwarning.agent.config.model import Action, Config
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.records import Memory
from fairwarning.agent.runner import Runner
from fairwarning.agent.state_file import StateFile
from fairwarning.testing import Server
from tests.agent.values import World
from tests.support.patience import HANG_S

T = TypeVar("T")
LOOKS_EVERY_S = 0.02


class Rig:
    """One VM: its world and its disk outlive its agent."""

    def __init__(self, server: Server, name: str, config: Config, folder: Path) -> None:
        self.server = server
        self.name = name
        self.config = config
        self.world = World()
        self.path = folder / f"{name}.json"
        self.saves = 0
        self.dies_after = 0
        """Killed right after so many writes; 0: never."""
        self._happened = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.state = StateFile(self.path)
        memory = self.state.open()
        self.metrics = Metrics()
        self.service = AgentClient(
            self.server.vm(self.name).url, seen=memory.seen, metrics=self.metrics
        )
        clock = Clock(self.service.now)
        me = await self.service.instance()
        self.runner = Runner(
            config=self.config,
            me=me,
            service=self.service,
            clock=clock,
            state=self,
            memory=memory,
            handler_of=lambda _: self,
            metrics=self.metrics,
        )
        self.service.on_answer = self._heard
        answers = self.service.answers
        self._task = asyncio.create_task(self.runner.run())
        await self.until(lambda: self.service.answers > answers)

    def _heard(self) -> None:
        self.runner.on_poll()
        self._happened.set()

    async def do(self, action: Action, context: Context) -> None:
        self._happened.set()
        await self.world.do(action, context)

    async def undo(self, action: Action, context: Context) -> None:
        self._happened.set()
        await self.world.undo(action, context)

    def save(self, memory: Memory) -> None:
        self._happened.set()
        self.state.save(memory)
        self.saves += 1
        if self.saves == self.dies_after:
            assert self._task is not None
            self._task.cancel()

    @property
    def is_dead(self) -> bool:
        return self._task is not None and (self._task.done() or self._task.cancelling() > 0)

    async def kill(self) -> None:
        """As a crash: nothing is tidied up."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.service.close()
        self.state.close()

    async def stop(self) -> None:
        assert self._task is not None
        self.runner.stop()
        await self._task
        await self.service.close()
        self.state.close()

    async def until(self, condition: Callable[[], T]) -> T:
        """Asked again whenever the agent heard, did or wrote something, and now and then: what
        others do it may not hear of for as long as the service holds its answer."""
        async with asyncio.timeout(HANG_S):
            while not (found := condition()):
                self._happened.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOKS_EVERY_S):
                        await self._happened.wait()
        return found

    async def advance(self, **by: float) -> None:
        """Moves the server's clock, and lets the agent hear of it as the next poll would."""
        self.server.advance(**by)
        await self.service.get()

    async def until_calm(self) -> None:
        """All is done and undone."""
        await self.until(lambda: not self.runner.memory.records)
