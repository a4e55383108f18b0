"""Runs the template job of one deployment in a thread, or in a process of its own.

The job of a small template starts in a thread. The job of a large template, or of one that needs
much work, runs in a process. If the process dies, it is replaced once. The new process gets all
earlier questions again, which brings its job to the same state.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.templates.limits import SMALL_WORK
from fairwarning.azure_api.templates.scope_functions import DeploymentContext
from fairwarning.azure_api.templates.template_job import (
    DeploymentPlan,
    Evaluated,
    TemplateJob,
    question,
    read_answer,
)
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.subprocess_pool import ProcessDied, Subprocess, process_died, started

SMALL_BYTES = 16 * 1024
"""A template up to this size starts in a thread."""


@asynccontextmanager
async def template_runner(arm: Arm, call: ArmCall) -> AsyncIterator["TemplateRunner"]:
    """Yields a runner that has parsed the body of the call. Raises ArmError or Problem."""
    async with AsyncExitStack() as exits:
        runner = TemplateRunner(arm.control, call.caller.key, exits)
        if len(call.template) > SMALL_BYTES:
            await runner.start_process()
        await runner.read(call.template)
        yield runner


class TemplateRunner:
    """Sends questions to the template job.

    Raises ArmError, or Problem if no process is available.
    """

    def __init__(self, control: Control, caller: str, exits: AsyncExitStack) -> None:
        self._control = control
        self._caller = caller
        self._exits = exits
        self._job: TemplateJob | None = TemplateJob(SMALL_WORK)
        self._process: Subprocess | None = None
        self._questions: list[bytes] = []
        self._has_died = False

    async def read(self, raw: bytes) -> None:
        await self._ask("read", raw)

    async def summary(self, deployment: int) -> tuple[Json, str]:
        found: tuple[Json, str] = await self._ask("summary", deployment)
        return found

    async def result_format(self) -> str:
        """Returns the format that a what-if asks for, in lower case. It is empty by default."""
        found: str = await self._ask("result_format")
        return found

    async def plan(self, deployment: int, context: DeploymentContext) -> DeploymentPlan:
        found: DeploymentPlan = await self._ask("plan", deployment, context)
        return found

    async def body(self, deployment: int, number: int) -> Evaluated:
        found: Evaluated = await self._ask("body", deployment, number)
        return found

    async def outputs(self, deployment: int) -> Evaluated:
        found: Evaluated = await self._ask("outputs", deployment)
        return found

    async def add_resource(self, id: str, found: Json) -> None:
        await self._ask("add_resource", id, found)

    async def start_process(self) -> None:
        """Starts a process for the job.

        The caller must then send all earlier questions to it again.
        """
        self._job = None
        await self._exits.enter_async_context(self._control.subprocesses.turn(self._caller))
        self._process = await self._exits.enter_async_context(started("template"))

    async def _ask(self, name: str, *arguments: object) -> Any:
        self._questions.append(question(name, arguments))
        if self._job is not None:
            try:
                return await self._control.offload(getattr(self._job, name), *arguments)
            except ArmError:
                if not self._job.budget.is_spent:
                    raise
            await self.start_process()
            return read_answer(await self._ask_process(self._questions))
        return read_answer(await self._ask_process(self._questions[-1:]))

    async def _ask_process(self, questions: list[bytes]) -> bytes:
        try:
            return await self._exchange(questions)
        except ProcessDied:
            if self._has_died:
                raise process_died() from None
        self._has_died = True
        self._process = await self._exits.enter_async_context(started("template"))
        return await self._ask_process(self._questions)

    async def _exchange(self, questions: list[bytes]) -> bytes:
        assert self._process is not None
        answer = b""
        for each in questions:
            await self._process.send(each)
            answer = await self._process.receive()
        return answer
