"""Work that a large body causes, done in a process of its own.

A thread would not do: it holds the interpreter's lock, in one long call or while it collects
garbage, and polls wait for that. The process ends with its work, so all its memory comes back;
it has less claim to the processor than we, and an end in time and memory. Frames go in and out:
four bytes with the length, then as many; one of length 0 is the last.
"""

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import AsyncIterable
from contextlib import suppress

from fairwarning.control.problems import Problem

AT_ONCE_MAX = 2
WAITING_MAX = 16
CALLER_MAX = 4
"""Of one caller, running and waiting."""
WORK_S_MAX = 120.0
ANSWER_BYTES_MAX = 512 * 1024 * 1024
_COMPLAINT_BYTES_MAX = 8_192
_log = logging.getLogger(__name__)


class SideProcesses:
    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE_MAX)
        self._callers: Counter[str] = Counter()

    async def run(self, job: str, given: AsyncIterable[bytes], *, caller: str) -> list[bytes]:
        """The frames that the job (`side_jobs.py`) makes of these. Raises Problem."""
        if (
            self._callers.total() >= AT_ONCE_MAX + WAITING_MAX
            or self._callers[caller] >= CALLER_MAX
        ):
            raise _busy()
        self._callers[caller] += 1
        try:
            async with self._free:
                return await _run(job, given)
        finally:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]


async def _run(job: str, given: AsyncIterable[bytes]) -> list[bytes]:
    folders = os.pathsep.join(each for each in sys.path if each)
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "fairwarning.control.side_jobs", job,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": folders},
        )  # fmt: skip
    except OSError as problem:
        _log.warning("no process for a large body: %s", problem)
        raise _busy() from None
    try:
        async with asyncio.timeout(WORK_S_MAX):
            return await _exchange(process, given)
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        raise Problem(
            422, "body-too-costly", "this body takes too much work; divide it into smaller ones"
        ) from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await _end(process)


async def _exchange(
    process: asyncio.subprocess.Process, given: AsyncIterable[bytes]
) -> list[bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    async for frame in given:
        process.stdin.writelines((len(frame).to_bytes(4), frame))
        await process.stdin.drain()
    process.stdin.write(bytes(4))
    await process.stdin.drain()
    made: list[bytes] = []
    size = 0
    while length := int.from_bytes(await process.stdout.readexactly(4)):
        size += length
        if size > ANSWER_BYTES_MAX:
            raise TimeoutError
        made.append(await process.stdout.readexactly(length))
    return made


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    assert process.stdin is not None
    process.stdin.close()
    said = await process.stderr.read(_COMPLAINT_BYTES_MAX)
    await process.wait()
    if said:
        _log.warning("the process for a large body complained: %s", said.decode(errors="replace"))


def _busy() -> Problem:
    return Problem(
        503,
        "too-many-large-bodies",
        "other large bodies are being read; try again in a moment",
        headers={"Retry-After": "5"},
    )
