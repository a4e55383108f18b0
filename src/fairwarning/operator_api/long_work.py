"""Long work of our own that no body is read for: estimates of rollouts, small plans.

Short of being long it is done in a thread, one piece at a time, so that many who ask for much
leave polls their share of the processor; and callers take turns, so that nobody waits for all
that another has asked for. What is long is done in a process, as large bodies are.
"""

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from fairwarning.core.refusals import Code, Refused
from fairwarning.operator_api.fair_turns import CallerHasTooMany, FairTurns
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.side_process import SideProcesses

CALLER_MAX = 32
"""Of one caller, under way and waiting."""
BATCH = 200
T = TypeVar("T")

caller_key: ContextVar[str] = ContextVar("caller_key", default="")
"""Whose request this task answers (`Caller.key`)."""


class LongWork:
    def __init__(self, aside: SideProcesses) -> None:
        self._aside = aside
        self._turns = FairTurns(at_once=1, caller_at_once=1, caller_max=CALLER_MAX)

    async def __call__(self, work: Callable[..., T], *given: Any, is_long: bool = False) -> T:
        """Raises Problem, and what the work raises."""
        if is_long:
            caller = caller_key.get()
            frames = await self._aside.run("call", lambda: _sent(work, given), caller=caller)
            result: T = await _understood(frames)
            return result
        async with self.turn():
            return await asyncio.to_thread(work, *given)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """For whoever has to read much before a thread can work on it. Raises Problem."""
        try:
            async with self._turns.turn(caller_key.get()):
                yield
        except CallerHasTooMany:
            raise Problem(
                429,
                "too-many-plans",
                f"{CALLER_MAX} of your plans and estimates are being worked out; wait for one of "
                "them",
                headers={"Retry-After": "1"},
            ) from None


def call_job(given: Iterator[bytes]) -> Iterator[bytes]:
    """The work of the process: a function of ours, and its arguments in pieces."""
    work: Callable[..., object] = _loaded(next(given))
    arguments: list[Any] = []
    for frame in given:
        piece = _loaded(frame[1:])
        match frame[:1]:
            case b"+" if isinstance(piece, dict):
                arguments[-1] |= piece
            case b"+":
                arguments[-1] += piece
            case _:
                arguments.append(piece)
    try:
        result = work(*arguments)
    except Refused as refused:
        yield b"R" + pickle.dumps((refused.code.value, refused.message))
    else:
        yield b"=" + pickle.dumps(result)


async def _sent(work: Callable[..., object], given: Sequence[Any]) -> AsyncIterator[bytes]:
    """Each frame is made in a moment, so that the event loop is not held."""
    yield pickle.dumps(work)
    for argument in given:
        for number, piece in enumerate(_pieces(argument)):
            yield (b"+" if number else b"v") + pickle.dumps(piece)


def _pieces(argument: Any) -> Iterator[Any]:
    if not isinstance(argument, list | tuple | dict) or len(argument) <= BATCH:
        yield argument
        return
    keys = list(argument) if isinstance(argument, dict) else range(len(argument))
    for first in range(0, len(argument), BATCH):
        if isinstance(argument, dict):
            yield {key: argument[key] for key in keys[first : first + BATCH]}
        else:
            yield argument[first : first + BATCH]


async def _understood(frames: Sequence[bytes]) -> Any:
    frame = frames[0]
    if frame[:1] == b"R":
        word, message = _loaded(frame[1:])
        raise Refused(Code(word), message)
    return _loaded(frame[1:])


def _loaded(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301  Only we ourselves write these.
