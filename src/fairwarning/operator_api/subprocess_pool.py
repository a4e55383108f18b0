"""Runs the work for large bodies in a few processes.

A thread is not enough: it can hold the interpreter's lock for long, and polls would wait for it.
Each process ends with its work, so all its memory is freed. It has a lower priority than the
server, and limits of time and memory. Its program is `subprocess_main.py`. Input and output are
frames: four bytes with the length, then that many bytes. A frame of length 0 is the last.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fairwarning.operator_api.fair_queue import CallerQueueFull, FairQueue, QueueFull
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.subprocess_main import EXIT_TOO_COSTLY

AT_ONCE_MAX = 2  # Each may take up to 3 GiB of memory and a core.
CALLER_AT_ONCE_MAX = 1
"""How many processes one caller may run at once. The rest stay free for other callers."""
WAITING_MAX = 16  # More would wait longer than their clients do.
CALLER_MAX = 4
"""How many jobs of one caller may run and wait together."""
WORK_S_MAX = 120.0  # Few clients and proxies wait longer for an answer.
ANSWER_BYTES_MAX = 512 * 1024 * 1024  # More than the plan of the largest fleet.
_COMPLAINT_BYTES_MAX = 8_192  # Enough for a traceback in the log.
_TOO_COSTLY = (EXIT_TOO_COSTLY, -signal.SIGXCPU)
_log = logging.getLogger(__name__)


class ProcessDied(Exception):
    """The process was ended from outside, for example by the kernel when memory is short."""


class SubprocessPool:
    def __init__(self) -> None:
        self._queue = FairQueue(
            at_once=AT_ONCE_MAX,
            caller_at_once=CALLER_AT_ONCE_MAX,
            caller_max=CALLER_MAX,
            all_max=AT_ONCE_MAX + WAITING_MAX,
        )

    async def run(
        self, job: str, given: Callable[[], AsyncIterable[bytes]], *, caller: str
    ) -> list[bytes]:
        """Run the job with the frames `given`, and return its output frames. Raises Problem.

        If the process dies, the job is run once more, because jobs have no side effects.
        """
        async with self.turn(caller):
            try:
                return await _run(job, given())
            except ProcessDied:
                _log.warning("a process for a large body died; it is begun again")
            try:
                return await _run(job, given())
            except ProcessDied:
                raise process_died() from None

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a place and hold it, for callers that start a process with `started`.

        Raises Problem if too many jobs run and wait.
        """
        try:
            async with self._queue.turn(caller):
                yield
        except CallerQueueFull:
            raise Problem(
                429,
                "too-many-large-bodies",
                f"{CALLER_MAX} of your large bodies are being worked on; wait for one of them",
                headers={"Retry-After": "5"},
            ) from None
        except QueueFull:
            raise _busy() from None


class Subprocess:
    """A running process that receives and sends frames."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in = process.stdin
        self._out = process.stdout
        self._made_bytes = 0

    async def send(self, frame: bytes) -> None:
        """Send a frame. Raises Problem if the job is too costly, or ProcessDied."""
        async with self._in_time():
            # uvloop raises no ConnectionError for a pipe that it knows to be closed.
            if self._in.is_closing():
                raise ConnectionResetError
            self._in.writelines((len(frame).to_bytes(4), frame))
            await self._in.drain()

    async def receive(self) -> bytes:
        """Return the next frame; an empty frame is the last. Raises the same errors as `send`."""
        async with self._in_time():
            length = int.from_bytes(await self._out.readexactly(4))
            self._made_bytes += length
            if self._made_bytes > ANSWER_BYTES_MAX:
                raise TimeoutError
            return await self._out.readexactly(length)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(WORK_S_MAX):
                yield
        except TimeoutError:
            raise _too_costly() from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._why_over() from None

    async def _why_over(self) -> Exception:
        status = await self._process.wait()
        if status in _TOO_COSTLY:
            return _too_costly()
        if status < 0:
            return ProcessDied()
        return RuntimeError(f"the process for a large body ended with {status}")


@asynccontextmanager
async def started(job: str) -> AsyncIterator[Subprocess]:
    """Start a process, and end it after the `with` block. Raises Problem if it cannot start."""
    folders = os.pathsep.join(each for each in sys.path if each)
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "fairwarning.operator_api.subprocess_main", job,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": folders},
        )  # fmt: skip
    except OSError as problem:
        _log.warning("no process for a large body: %s", problem)
        raise _busy() from None
    try:
        yield Subprocess(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await _end(process)


async def _run(job: str, given: AsyncIterable[bytes]) -> list[bytes]:
    made: list[bytes] = []
    try:
        async with asyncio.timeout(WORK_S_MAX), started(job) as process:
            async for frame in given:
                await process.send(frame)
            await process.send(b"")
            while frame := await process.receive():
                made.append(frame)
    except TimeoutError:
        raise _too_costly() from None
    return made


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    assert process.stdin is not None
    process.stdin.close()
    said = await process.stderr.read(_COMPLAINT_BYTES_MAX)
    await process.wait()
    if said:
        _log.warning("the process for a large body complained: %s", said.decode(errors="replace"))


def process_died() -> Problem:
    return Problem(
        503,
        "large-body-interrupted",
        "the process that worked on this body was ended from outside, perhaps because the machine "
        "is short of memory; try again in a moment",
        headers={"Retry-After": "5"},
    )


def _too_costly() -> Problem:
    return Problem(
        422, "body-too-costly", "this body takes too much work; divide it into smaller ones"
    )


def _busy() -> Problem:
    return Problem(
        503,
        "too-many-large-bodies",
        "other large bodies are being read; try again in a moment",
        headers={"Retry-After": "5"},
    )
