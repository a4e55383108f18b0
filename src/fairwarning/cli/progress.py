"""Shows on standard error how far a long command is.

On a terminal one line is written again and again, and cleared at the end. Elsewhere, as in a log, a
line is written from time to time. A command that is over soon shows nothing.
"""

import sys
import time
from collections.abc import Callable
from typing import Self

import click

FIRST_S = 0.5  # A command that is over sooner needs no progress.
EACH_S = 0.1  # Often enough for the eye.
EACH_IN_LOG_S = 10.0


class Progress:
    def __init__(self, steady_s: Callable[[], float] = time.monotonic) -> None:
        self._steady_s = steady_s
        self._is_terminal = sys.stderr.isatty()
        self._next_s = steady_s() + (FIRST_S if self._is_terminal else EACH_IN_LOG_S)
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Show the text, unless another was shown a moment ago."""
        now = self._steady_s()
        if now < self._next_s:
            return
        if self._is_terminal:
            self._next_s = now + EACH_S
            self._is_shown = True
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)
        else:
            self._next_s = now + EACH_IN_LOG_S
            click.echo(text, err=True)

    def clear(self) -> None:
        """Take the line away, so that other text can follow."""
        if self._is_shown:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._is_shown = False
