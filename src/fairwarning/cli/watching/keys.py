"""The keyboard while the screen is up: keys come at once and unseen, and are given back after."""

import os
import select
import sys
import termios
import time
import tty
from types import TracebackType
from typing import Self


class Keys:
    """Without a terminal on standard input there are no keys, only the passing of time."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno() if sys.stdin.isatty() else None

    def __enter__(self) -> Self:
        if self._fd is not None:
            self._before = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def wait(self, timeout_s: float) -> str:
        """What was typed within that time."""
        if self._fd is None:
            time.sleep(timeout_s)
            return ""
        readable, _, _ = select.select([self._fd], [], [], timeout_s)
        return os.read(self._fd, 64).decode(errors="replace") if readable else ""
