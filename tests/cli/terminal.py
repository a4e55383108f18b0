"""The program on a terminal of its own, as a person has it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.patience import HANG_S


class Terminal:
    def __init__(self, master: int, slave: int, process: subprocess.Popen[bytes]) -> None:
        self._master, self._slave = master, slave
        self.process = process
        self.output = ""

    @property
    def text(self) -> str:
        """Without colours and movements of the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.output)

    def read_until(self, wanted: str, *, since: int = 0) -> None:
        end = time.monotonic() + HANG_S
        while wanted not in self.text[since:]:
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} never came; there is {self.text!r}"
            readable, _, _ = select.select([self._master], [], [], left)
            if readable:
                self.output += os.read(self._master, 65536).decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def settings(self) -> list[object]:
        return termios.tcgetattr(self._slave)

    def ended(self) -> int:
        """The exit code, with all that was still to be read."""
        end = time.monotonic() + HANG_S
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end; there is {self.text!r}"
            self._drain(0.05)
        self._drain(0)
        return self.process.returncode

    def _drain(self, timeout_s: float) -> None:
        while select.select([self._master], [], [], timeout_s)[0]:
            self.output += os.read(self._master, 65536).decode(errors="replace")


@contextmanager
def on_terminal(
    *arguments: str, rows: int = 30, columns: int = 80, **environment: str
) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NO_COLOR")}
    env = {**kept, "TERM": "xterm", "LANG": "C.UTF-8", "PYTHONUTF8": "1", **environment}
    env.pop("COLUMNS", None)
    env.pop("LINES", None)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _AS_OWNER, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
        start_new_session=True,
    )
    try:
        yield Terminal(master, slave, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


_AS_OWNER = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it
from fairwarning.cli.main import main
main(prog_name="fairwarning")
"""
