"""Receives the large bodies of a few requests into files, so that they take no memory.

A fleet file of 100,000 instances has some ten megabytes. A body may come slowly, so it is first
received as a whole and only then worked on; a slow client keeps nobody from the processes that work
on large bodies.
"""

import asyncio
import logging
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import IO, Any

from starlette.requests import Request

from fairwarning.operator_api.body_memory import RELEASE
from fairwarning.operator_api.problems import Problem

BYTES_MAX = 128 * 1024 * 1024  # A million instances with addresses and tags.
AT_ONCE_MAX = 4  # Together they take at most half a gibibyte of the disk.
CALLER_AT_ONCE_MAX = 1  # One caller must not keep the others out.
BEGIN_S_MAX = 60  # As long as an ordinary body may take.
BYTES_PER_S_MIN = 64 * 1024
"""A body may take `BEGIN_S_MAX`, and the time that it takes at this rate, which is a slow one."""
PART_BYTES = 1024 * 1024
"""How much is written and read at once, in a thread, because a disk may be slow."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SpooledBody:
    """A body that was received as a whole."""

    is_toml: bool
    size: int
    _file: IO[bytes]

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body in parts, from its beginning."""
        await asyncio.to_thread(self._file.seek, 0)
        while part := await asyncio.to_thread(self._file.read, PART_BYTES):
            yield part


class SpooledBodies:
    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        """How many bodies of each caller are held."""

    @asynccontextmanager
    async def receive(
        self, request: Request, caller: str, *, is_toml: bool
    ) -> AsyncIterator[SpooledBody]:
        """Receive the body, and keep it until the end of the `with` block.

        Raises Problem if it is too large or too slow, or if too many bodies are held.
        """
        if self._open[caller] >= CALLER_AT_ONCE_MAX or self._open.total() >= AT_ONCE_MAX:
            raise Problem(
                503,
                "too-many-large-bodies",
                f"{AT_ONCE_MAX} large bodies are under way, or one of yours; send this one again "
                "when it is done",
                headers={"Retry-After": "5", "Connection": "close"},
            )
        self._open[caller] += 1
        try:
            with _no_room_for_body():
                file = tempfile.TemporaryFile()  # noqa: SIM115  It is closed below.
            with file:
                with _no_room_for_body():
                    size = await _receive(request, file)
                yield SpooledBody(is_toml, size, file)
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


@contextmanager
def _no_room_for_body() -> Iterator[None]:
    """Raise Problem for an error of the disk."""
    try:
        yield
    except OSError as error:
        _log.warning("a large body cannot be kept: %s", error)
        raise Problem(
            503,
            "no-room-for-body",
            "the server cannot keep this body on its disk; its log says why",
            headers={"Connection": "close"},
        ) from None


async def _receive(request: Request, file: IO[bytes]) -> int:
    """Write the body to the file and return its size."""
    release: Callable[[int], None] = request.scope.get(RELEASE, lambda _: None)
    size, held = 0, bytearray()
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout_at(began + BEGIN_S_MAX) as limit:
            async for part in request.stream():
                size += len(part)
                if size > BYTES_MAX:
                    raise _too_large()
                limit.reschedule(began + BEGIN_S_MAX + size / BYTES_PER_S_MIN)
                held += part
                if len(held) >= PART_BYTES:
                    await _write(file, held, release)
            await _write(file, held, release)
    except TimeoutError:
        raise Problem(
            408,
            "body-too-slow",
            f"after {BEGIN_S_MAX} s a body must come with {BYTES_PER_S_MIN:,} bytes a second; "
            "send it faster",
            headers={"Connection": "close"},
        ) from None
    return size


async def _write(file: IO[bytes], held: bytearray, release: Callable[[int], Any]) -> None:
    await asyncio.to_thread(file.write, held)
    release(len(held))
    held.clear()


def _too_large() -> Problem:
    return Problem(
        413,
        "body-too-large",
        f"the body is larger than {BYTES_MAX:,} bytes; declare the fleet in several files, each "
        "with POST /api/v1/fleet",
        headers={"Connection": "close"},
    )
