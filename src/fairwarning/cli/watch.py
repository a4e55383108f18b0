"""`fairwarning watch` shows the fleet, its events and the transitions live."""

import json
import os
import select
import signal
import sys
import termios
import time
import tty
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

import click
from rich.console import Group
from rich.live import Live

from fairwarning.cli.common_options import ServerClock, Session, connected
from fairwarning.cli.event_stream import Entry, Feed, Lost
from fairwarning.cli.live_screen.refresher import Refresher
from fairwarning.cli.live_screen.screen import Line, screen
from fairwarning.cli.output import draw, make_console, text_of
from fairwarning.cli.table_model import Lines
from fairwarning.cli.tables.history import entry_line


@click.command(
    epilog="""\b
Examples:
  fairwarning watch
  fairwarning watch | tee transitions.log
  fairwarning watch --json | jq -r 'select(.kind == "Failed").text'
"""
)
@connected
def watch(session: Session) -> None:
    """Watch the fleet on a live screen until q or Ctrl-C.

    If the output is a pipe, the command prints a line for each transition, or with --json a JSON
    object.
    """
    if session.as_json or not sys.stdout.isatty():
        _print_lines(session)
        return
    from fairwarning.cli.live_screen.refresher import Refresher  # noqa: PLC0415  help must not wait

    show_live(Refresher(session.api, session.clock), session.clock, session.api.url)


def _print_lines(session: Session) -> None:
    newest = session.api.get("history", limit=1)["entries"]
    feed = Feed(session.api.stream, newest[0]["position"] if newest else None)
    session.note(f"Watching {session.api.url} until Ctrl-C.")
    console = None if session.as_json else make_console()
    try:
        while True:
            happening = feed.next()
            if isinstance(happening, Lost):
                session.note(f"connection lost ({happening.reason}); trying again")
            elif isinstance(happening, Entry) and console is None:
                click.echo(json.dumps(happening.body, ensure_ascii=False))
            elif isinstance(happening, Entry) and console is not None:
                draw(console, Lines(lines=(entry_line(happening.body),)))
                sys.stdout.flush()
    except KeyboardInterrupt:
        return


LOOK_S = 0.25  # A key or a change is shown within a quarter of a second.
QUIT = frozenset("qQ\x03\x04")


def show_live(refresher: Refresher, clock: ServerClock, url: str) -> None:
    console = make_console()
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    drawn: tuple[object, list[Line]] | None = None
    with (
        suppress(KeyboardInterrupt),
        Keys() as keys,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while refresher.ended is None:
            size = console.size
            lines = screen(
                refresher.seen,
                url,
                clock.now(),
                width=size.width,
                height=size.height,
                unicode=unicode,
            )
            if drawn != (size, lines):
                live.update(_rendered(lines), refresh=True)
                drawn = (size, lines)
            if QUIT & set(keys.wait(LOOK_S)):
                return
    if refresher.ended is not None:
        raise refresher.ended


def _rendered(lines: list[Line]) -> Group:
    texts = [text_of(*line) for line in lines]
    for text in texts:
        text.no_wrap, text.overflow = True, "ellipsis"
    return Group(*texts)


def _leave(number: int, _: FrameType | None) -> None:
    """Raise `SystemExit` on a signal, so that the terminal is restored."""
    raise SystemExit(128 + number)


class Keys:
    """Reads keys without Enter and without echo. If stdin is no terminal, it only waits."""

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
        """Return what was typed within `timeout_s`, or ""."""
        if self._fd is None:
            time.sleep(timeout_s)
            return ""
        readable, _, _ = select.select([self._fd], [], [], timeout_s)
        return os.read(self._fd, 64).decode(errors="replace") if readable else ""
