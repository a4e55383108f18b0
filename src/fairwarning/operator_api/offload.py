"""Runs our own slow computations (estimates of rollouts, plans) outside of the event loop.

Short computations run in a thread, one at a time, so that polls keep their share of the
processor. Callers take turns, so that no caller waits for all computations of another. A long
computation runs in a process of its own (`subprocess_pool.py`).
"""

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any, TypeVar

import msgspec

from fairwarning.common.loop_slices import map_in_slices
from fairwarning.core.refusals import Code, Refused
from fairwarning.operator_api.fair_queue import CallerQueueFull, FairQueue
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.subprocess_pool import SubprocessPool

CALLER_MAX = 32
"""How many computations of one caller may run and wait together."""
BATCH = 10
"""How many items one frame holds. Ten scopes of 100 instances take 8 ms to pickle."""
T = TypeVar("T")

caller_key: ContextVar[str] = ContextVar("caller_key", default="")
"""The key of the caller whose request this task answers (`Caller.key`)."""


class Offload:
    def __init__(self, subprocesses: SubprocessPool) -> None:
        self._subprocesses = subprocesses
        self._queue = FairQueue(at_once=1, caller_at_once=1, caller_max=CALLER_MAX)

    async def __call__(self, work: Callable[..., T], *given: Any, is_long: bool = False) -> T:
        """Return `work(*given)`, run in a thread, or in a process if `is_long`.

        Raises Problem if the caller has too many computations, and what `work` raises.
        """
        if is_long:
            caller = caller_key.get()
            frames = await self._subprocesses.run("call", lambda: _sent(work, given), caller=caller)
            result: T = await _understood(frames)
            return result
        async with self.turn():
            return await asyncio.to_thread(work, *given)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the caller's turn and hold it, for callers that start a thread themselves.

        Raises Problem if the caller has too many computations.
        """
        try:
            async with self._queue.turn(caller_key.get()):
                yield
        except CallerQueueFull:
            raise Problem(
                429,
                "too-many-plans",
                f"{CALLER_MAX} of your plans and estimates are being worked out; wait for one of "
                "them",
                headers={"Retry-After": "1"},
            ) from None


def call_job(given: Iterator[bytes]) -> Iterator[bytes]:
    """Call a function in the subprocess. `given` are the frames that `_sent` yields."""
    work: Callable[..., Any] = unpickled(next(given))
    arguments: list[Any] = []
    for frame in given:
        piece = unpickled(frame[1:])
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
        # A result is steps of a rollout, or has them. There may be many, so they are sent apart.
        is_steps = isinstance(result, tuple)
        steps: tuple[Any, ...] = result if isinstance(result, tuple) else result.steps
        yield b"=" + pickle.dumps(None if is_steps else msgspec.structs.replace(result, steps=()))
        for piece in _pieces(steps):
            yield b"+" + pickle.dumps(piece)


async def _sent(work: Callable[..., object], given: Sequence[Any]) -> AsyncIterator[bytes]:
    """Yield the function and its arguments as small frames, to not block the event loop."""
    yield pickle.dumps(work)
    for argument in given:
        for number, piece in enumerate(_pieces(argument)):
            yield (b"+" if number else b"v") + pickle.dumps(piece)
            await asyncio.sleep(0)


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
    first = unpickled(frames[0][1:])
    if frames[0][:1] == b"R":
        word, message = first
        raise Refused(Code(word), message)
    pieces = await map_in_slices(lambda frame: unpickled(frame[1:]), frames[1:])
    steps = tuple(chain.from_iterable(pieces))
    return steps if first is None else msgspec.structs.replace(first, steps=steps)


def unpickled(content: bytes | memoryview) -> Any:
    return pickle.loads(content)  # noqa: S301  Only we ourselves write these.
