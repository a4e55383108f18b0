"""Runs the programs of actions. A cancelled run ends the program with its whole process group.

What a program that ended by itself left running in the background is left alone.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType

from fairwarning.agent.actions.base import ActionFailed
from fairwarning.common.process_group import end

GRACE_S = 5.0
"""How long a program may take between SIGTERM and SIGKILL."""
COMPLAINT_CHARS_MAX = 300
noted: ContextVar[Callable[[int], AbstractContextManager[None]]] = ContextVar(
    "noted", default=lambda _: nullcontext()
)
"""A context manager that is entered with the leader of each started group until it has ended."""
# Variables of the agent's own service: a program must not report to systemd in its name.
_NOT_INHERITED = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    code: int
    output: str
    """The end of the output; so is the next."""
    errors: str

    @property
    def said(self) -> str:
        return "\n".join(part.strip() for part in (self.output, self.errors) if part.strip())

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        return lines[-1][:COMPLAINT_CHARS_MAX] if lines else ""


async def run(
    argv: Sequence[str], *, environment: Mapping[str, str], stdin: bytes = b""
) -> Finished:
    """Run a program; cancel this to end it. Raises ActionFailed if it cannot be started."""
    with _given(stdin) as given, OutputTail() as output, OutputTail() as errors:
        process = await _start(argv, environment, (given, output.to_write, errors.to_write))
        with noted.get()(process.pid):
            output.listen()
            errors.listen()
            try:
                code = await process.wait()
            finally:
                if process.returncode is None:
                    await end(process, GRACE_S)
                    _tell_last_words(argv[0], output.text(), errors.text())
        return Finished(code=code, output=output.text(), errors=errors.text())


async def must_run(argv: Sequence[str], *, environment: Mapping[str, str]) -> str:
    """Run a program and return its output. Raises ActionFailed unless it exits with 0."""
    finished = await run(argv, environment=environment)
    if finished.code != 0:
        raise ActionFailed(complaint(argv[0], finished))
    return finished.output


def complaint(program: str, finished: Finished) -> str:
    """Return what went wrong in one line, without arguments, which may hold secrets."""
    code, said = finished.code, finished.last_line
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"{os.path.basename(program)} {how}" + (f": {said}" if said else "")


def _tell_last_words(program: str, output: str, errors: str) -> None:
    """Log the last lines of a program that was cut off: they may say what took so long."""
    cut = Finished(code=-signal.SIGTERM, output=output, errors=errors)
    if cut.last_line:
        _log.warning("%s was cut off; it last said: %s", os.path.basename(program), cut.last_line)


def inherited(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name not in _NOT_INHERITED}


@contextmanager
def _given(content: bytes) -> Iterator[int]:
    """Return a file in memory and no pipe: a program that does not read must not block us."""
    file = os.memfd_create("event")
    try:
        with open(file, "wb", closefd=False) as writer:
            writer.write(content)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)


async def _start(
    argv: Sequence[str], environment: Mapping[str, str], files: tuple[int, int, int]
) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            env=inherited(os.environ) | dict(environment),
            start_new_session=True,
        )
    )
    try:
        # If this were cancelled here, asyncio would end the program alone and not its group.
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError, ValueError):
            process = await starting
            with noted.get()(process.pid):
                await end(process, GRACE_S)
        raise
    except OSError as problem:
        raise ActionFailed(f"cannot run {argv[0]!r}: {problem.strerror}") from None
    except ValueError as problem:
        raise ActionFailed(f"cannot run {argv[0]!r}: {problem}") from None


KEPT_BYTES = 32_768
_READ_BYTES = 65_536
_LAST_READS = 64


class OutputTail:
    """Reads a pipe as output comes, so that the program never waits, and keeps the end of it.

    A background process may hold the pipe open; nobody waits for that.
    """

    def __init__(self) -> None:
        self._read, self.to_write = os.pipe()
        os.set_blocking(self._read, False)
        self._kept = b""
        self._is_cut = False
        self._is_listening = False

    def __enter__(self) -> "OutputTail":
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        os.close(self._read)
        if self.to_write >= 0:
            os.close(self.to_write)

    def listen(self) -> None:
        """Begin to read, once the program has its end of the pipe."""
        os.close(self.to_write)
        self.to_write = -1
        self._is_listening = True
        asyncio.get_running_loop().add_reader(self._read, self._take)

    def text(self) -> str:
        for _ in range(_LAST_READS):
            if not self._take():
                break
        start = "… " if self._is_cut else ""
        return start + self._kept.decode(errors="replace")

    def _take(self) -> bool:
        """Read what there is; return False if there is nothing more for now."""
        try:
            read = os.read(self._read, _READ_BYTES)
        except BlockingIOError:
            return False
        if not read:
            self._stop()
            return False
        whole = self._kept + read
        self._is_cut = self._is_cut or len(whole) > KEPT_BYTES
        self._kept = whole[-KEPT_BYTES:]
        return True

    def _stop(self) -> None:
        if self._is_listening:
            asyncio.get_running_loop().remove_reader(self._read)
            self._is_listening = False
