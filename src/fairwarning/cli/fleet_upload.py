"""Sends a fleet file of any size, shows the progress, and joins the lines of the answer."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import click

from fairwarning.common.command_errors import Disconnected, Problem

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

Json = dict[str, Any]
PART_BYTES = 256 * 1024  # Small enough to show how far the sending is.
FIRST_S = 0.5  # A command that is over sooner needs no progress.
EACH_S = 0.1  # Often enough for the eye.
EACH_IN_LOG_S = 10.0  # A log is read later, so few lines are enough.


def send_fleet(
    api: "Api", method: str, *path: str, content: bytes, media_type: str, **params: Any
) -> Json:
    """Send the fleet file, and return the whole plan. Raises `Problem`. If only a part of the plan
    was carried out, its text says how much.
    """
    with Progress() as progress:
        done = scopes = 0
        plan: Json = {"changes": [], "kept": [], "confirm": None, "warnings": [], "terminates": []}
        try:
            with api.send_large(
                method, *path, content=_parts(content, progress), size=len(content),
                media_type=media_type, **params,
            ) as lines:  # fmt: skip
                for line in lines:
                    if "step" not in line:
                        return line
                    done, scopes = line.get("done", done), line.get("scopes", scopes)
                    _add(plan, line)
                    if line["step"] == "done":
                        return plan
                    progress.show(f"{done:,} of {scopes:,} scopes")
        except KeyboardInterrupt:
            raise _broken_off("stopped", done, scopes) from None
        except Disconnected as error:
            raise _broken_off(f"the connection broke ({error})", done, scopes) from None
        raise _broken_off("the answer of the server broke off", done, scopes)


class Progress:
    """Shows on standard error how far a long command is.

    On a terminal one line is written again and again, and cleared at the end. Elsewhere, as in a
    log, a line is written from time to time. A command that is over soon shows nothing.
    """

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


def _parts(content: bytes, progress: Progress) -> Iterator[bytes]:
    for first in range(0, len(content), PART_BYTES):
        yield content[first : first + PART_BYTES]
        progress.show(f"sent {min(first + PART_BYTES, len(content)):,} of {len(content):,} bytes")
    progress.show("the server plans")


def _add(plan: Json, line: Json) -> None:
    for key in plan.keys() & line.keys():
        if isinstance(plan[key], list):
            plan[key] += line[key]
        else:
            plan[key] = line[key]


def _broken_off(what: str, done: int, scopes: int) -> Problem:
    if not done:
        return Problem(
            f"{what} before the server told of a change; see `fairwarning history`, and run this "
            "again"
        )
    return Problem(
        f"{what} after {done:,} of {scopes:,} scopes; those are as the file says, so run this "
        "again to finish"
    )
