"""Runs the programs of actions. A cancelled run ends the program with its whole process group.

If a program ends by itself, its background processes may go on.
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
"""How many seconds a program may take to end after SIGTERM. Then it gets SIGKILL."""
COMPLAINT_CHARS_MAX = 300  # The reason must fit on one line of a log or a status.
noted: ContextVar[Callable[[int], AbstractContextManager[None]]] = ContextVar(
    "noted", default=lambda _: nullcontext()
)
"""A function that takes the leader of a started process group and returns a context manager. The
context lasts as long as the program runs.
"""
# These variables belong to the agent's service. A program must not report to systemd for it.
_NOT_INHERITED = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    code: int
    output: str
    """The last part of the standard output. `errors` has the last part of the standard error."""
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
    """Run a program until it ends. Raises ActionFailed if it cannot be started.

    If this is cancelled, it first ends the program with its process group.
    """
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
    """Return in one line why a program failed. The line omits the arguments, which may contain
    secrets.
    """
    code, said = finished.code, finished.last_line
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"{os.path.basename(program)} {how}" + (f": {said}" if said else "")


def _tell_last_words(program: str, output: str, errors: str) -> None:
    """Log the last line of a program that was cut off, because it may say what took so long."""
    cut = Finished(code=-signal.SIGTERM, output=output, errors=errors)
    if cut.last_line:
        _log.warning("%s was cut off; it last said: %s", os.path.basename(program), cut.last_line)


def inherited(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name not in _NOT_INHERITED}


@contextmanager
def _given(content: bytes) -> Iterator[int]:
    """Yield the descriptor of a file in memory with this content.

    It is not a pipe, because a program that does not read a pipe would block us.
    """
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


KEPT_BYTES = 32_768  # More than any log line shows, and little memory for each program.
_READ_BYTES = 65_536  # A pipe holds 64 KiB by default.
_LAST_READS = 64  # A background process could write without end, so the last reading has an end.


class OutputTail:
    """Reads the output of a program from a pipe, and keeps only the last part.

    It reads at once, so that the program never has to wait. It does not wait for the end of the
    pipe, because a background process may keep the pipe open.
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
        """Begin to read. Call this when the program has started and has its end of the pipe."""
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
        """Read the available output. Return False if there is nothing more for now."""
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
