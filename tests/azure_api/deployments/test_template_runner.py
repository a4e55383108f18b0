"""A template that is too large for this process is evaluated in another, which may die."""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairwarning.azure_api.deployments import template_runner as module
from fairwarning.azure_api.deployments.template_runner import TemplateRunner
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.templates.template_job import serve_template_job
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.subprocess_pool import ProcessDied

BODY = b'{"properties": {"template": {"resources": [], "contentVersion": "1.0.0.0"}}}'


class FakeProcess:
    """The job without a process. It dies after so many answers."""

    def __init__(self, lives_for: int) -> None:
        self.lives_for = lives_for
        self._given: deque[bytes] = deque()
        self._answers = serve_template_job(self._frames())

    def _frames(self) -> Iterator[bytes]:
        while True:
            yield self._given.popleft()

    async def send(self, frame: bytes) -> None:
        self._given.append(frame)

    async def receive(self) -> bytes:
        if self.lives_for == 0:
            raise ProcessDied
        self.lives_for -= 1
        return next(self._answers)


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many answers each process dies."""
    found: list[int] = []

    @asynccontextmanager
    async def started(job: str) -> AsyncIterator[FakeProcess]:
        assert job == "template"
        yield FakeProcess(found.pop(0))

    monkeypatch.setattr(module, "started", started)
    return found


@asynccontextmanager
async def running() -> AsyncIterator[TemplateRunner]:
    @asynccontextmanager
    async def turn(_: str) -> AsyncIterator[None]:
        yield

    control: Any = SimpleNamespace(subprocesses=SimpleNamespace(turn=turn))
    async with AsyncExitStack() as exits:
        runner = TemplateRunner(cast(Control, control), "me", exits)
        await runner.start_process()
        yield runner


async def test_a_process_that_dies_is_replaced_and_asked_everything_again(
    lives: list[int],
) -> None:
    lives += [1, 99]
    async with running() as runner:
        await runner.read(BODY)
        assert await runner.result_format() == ""
        assert await runner.result_format() == ""
    assert lives == []


async def test_the_second_death_is_told(lives: list[int]) -> None:
    lives += [1, 1, 99]
    async with running() as runner:
        await runner.read(BODY)
        with pytest.raises(Problem):
            await runner.result_format()
    assert lives == [99], "it is not tried for ever"


async def test_a_refusal_of_the_other_process_is_the_same_error(lives: list[int]) -> None:
    lives += [99]
    async with running() as runner:
        with pytest.raises(ArmError) as refused:
            await runner.read(b"[")
    assert (refused.value.status, refused.value.failure.code) == (400, "InvalidRequestContent")
