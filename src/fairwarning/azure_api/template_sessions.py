"""One deployment's worker (`templates/worker.py`), wherever it is.

A small template is worked on in a thread, as long as it costs little. A large one, and one that
turns out to cost much, gets a process; so does one whose process died, once more. The new worker
is asked all that the one before was asked, and is then where that one was.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.templates.limits import SMALL_WORK
from fairwarning.azure_api.templates.scope_functions import Surroundings
from fairwarning.azure_api.templates.worker import (
    Evaluated,
    Planning,
    TemplateWorker,
    answer_in,
    question,
)
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.subprocess_pool import (
    ProcessDied,
    Subprocess,
    process_died,
    started,
)

SMALL_BYTES = 16 * 1024


@asynccontextmanager
async def template_session(arm: Arm, call: ArmCall) -> AsyncIterator["TemplateSession"]:
    """Has read the body of the call. Raises ArmError or Problem."""
    async with AsyncExitStack() as exits:
        session = TemplateSession(arm.control, call.caller.key, exits)
        if len(call.template) > SMALL_BYTES:
            await session.move()
        await session.read(call.template)
        yield session


class TemplateSession:
    """Asks the worker. Raises ArmError, or Problem if there can be none."""

    def __init__(self, control: Control, caller: str, exits: AsyncExitStack) -> None:
        self._control = control
        self._caller = caller
        self._exits = exits
        self._here: TemplateWorker | None = TemplateWorker(SMALL_WORK)
        self._process: Subprocess | None = None
        self._asked: list[bytes] = []
        self._has_died = False

    async def read(self, raw: bytes) -> None:
        await self._ask("read", raw)

    async def about(self, deployment: int) -> tuple[Json, str]:
        found: tuple[Json, str] = await self._ask("about", deployment)
        return found

    async def plan(self, deployment: int, place: Surroundings) -> Planning:
        found: Planning = await self._ask("plan", deployment, place)
        return found

    async def body(self, deployment: int, number: int) -> Evaluated:
        found: Evaluated = await self._ask("body", deployment, number)
        return found

    async def outputs(self, deployment: int) -> Evaluated:
        found: Evaluated = await self._ask("outputs", deployment)
        return found

    async def tell(self, id: str, found: Json) -> None:
        await self._ask("tell", id, found)

    async def move(self) -> None:
        """To a process, which nobody has asked anything."""
        self._here = None
        await self._exits.enter_async_context(self._control.subprocesses.turn(self._caller))
        self._process = await self._exits.enter_async_context(started("template"))

    async def _ask(self, name: str, *arguments: object) -> Any:
        self._asked.append(question(name, arguments))
        if self._here is not None:
            try:
                return await self._control.offload(getattr(self._here, name), *arguments)
            except ArmError:
                if not self._here.budget.is_spent:
                    raise
            await self.move()
            return answer_in(await self._last_of(self._asked))
        return answer_in(await self._last_of(self._asked[-1:]))

    async def _last_of(self, questions: list[bytes]) -> bytes:
        try:
            return await self._exchanged(questions)
        except ProcessDied:
            if self._has_died:
                raise process_died() from None
        self._has_died = True
        self._process = await self._exits.enter_async_context(started("template"))
        return await self._last_of(self._asked)

    async def _exchanged(self, questions: list[bytes]) -> bytes:
        assert self._process is not None
        said = b""
        for each in questions:
            await self._process.send(each)
            said = await self._process.receive()
        return said
