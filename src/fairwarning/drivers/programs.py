"""This module runs a program of the operator in a process group of its own, with a time limit.

The driver `command` and hooks use it.
"""

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from fairwarning.common.process_group import end
from fairwarning.engine.protocols import DriverFailed

GRACE_S = 5.0
"""How long the program may take to end after SIGTERM, before it gets SIGKILL."""
OUTPUT_BYTES_MAX = 4_096
"""Only this many bytes at the end of the output are read: the answer or the last error."""
OWN_PREFIXES = ("FAIRWARNING_", "PGPASSWORD")
"""Variables of the server that no program gets. The second one is the password of its store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended, and the end of what it wrote."""

    code: int | None
    """The exit code. It is negative if a signal ended the program, and None after a timeout."""
    how: str
    """The same in words, such as `ended with code 1`."""
    out: str
    err: str


async def run_program(
    words: Sequence[str], given: bytes, told: Mapping[str, str], timeout_s: float | None
) -> Ended:
    """Runs the program with `given` on its standard input. Its environment is that of the server
    without the server's own settings, plus `told`. Raises DriverFailed if it cannot be run.
    """
    # Files and not pipes, because a background process of the program would keep a pipe open.
    with ExitStack() as files:
        try:
            given_file, out, err = (
                files.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in range(3)
            )
            _fill(given_file, given)
        except OSError as error:
            raise DriverFailed(
                f"cannot write to {tempfile.gettempdir()}: {error.strerror}; free some space "
                "there, or set TMPDIR"
            ) from None
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=given_file,
                stdout=out,
                stderr=err,
                env={**_inherited(os.environ), **told},
                start_new_session=True,
            )
        except OSError as error:
            raise DriverFailed(f"cannot run {words[0]!r}: {error.strerror}") from None
        code = await _wait(process, timeout_s)
        return Ended(code=code, how=_in_words(code, timeout_s), out=_tail(out), err=_tail(err))


def _fill(file: IO[bytes], text: bytes) -> None:
    """Writes the text for the program to read. Raises OSError if the disk is full."""
    while text:
        # The file has no buffer, because that would be written again when the file is closed.
        text = text[file.write(text) :]
    file.seek(0)


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(OWN_PREFIXES)}


async def _wait(process: asyncio.subprocess.Process, timeout_s: float | None) -> int | None:
    """Waits for the program and returns its exit code. At the timeout it ends the program."""
    try:
        async with asyncio.timeout(timeout_s):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            await end(process, GRACE_S)


def _in_words(code: int | None, timeout_s: float | None) -> str:
    if code is None:
        return f"did not end within {timeout_s:g} s"
    return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - OUTPUT_BYTES_MAX))
    return file.read().decode(errors="replace")
