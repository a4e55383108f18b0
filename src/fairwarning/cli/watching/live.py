"""The screen on the terminal: drawn when something changed, until q or Ctrl-C."""

import signal
import sys
from contextlib import suppress
from types import FrameType

from rich.console import Group
from rich.live import Live

from fairwarning.cli.output import make_console, text_of
from fairwarning.cli.serverclock import ServerClock
from fairwarning.cli.watching.keeper import Keeper
from fairwarning.cli.watching.keys import Keys
from fairwarning.cli.watching.screen import Line, screen

LOOK_S = 0.25
QUIT = frozenset("qQ\x03\x04")


def show_live(keeper: Keeper, clock: ServerClock, url: str) -> None:
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
        while keeper.ended is None:
            size = console.size
            lines = screen(
                keeper.seen, url, clock.now(), width=size.width, height=size.height, unicode=unicode
            )
            if drawn != (size, lines):
                live.update(_rendered(lines), refresh=True)
                drawn = (size, lines)
            if QUIT & set(keys.wait(LOOK_S)):
                return
    if keeper.ended is not None:
        raise keeper.ended


def _rendered(lines: list[Line]) -> Group:
    texts = [text_of(*line) for line in lines]
    for text in texts:
        text.no_wrap, text.overflow = True, "ellipsis"
    return Group(*texts)


def _leave(number: int, _: FrameType | None) -> None:
    """As an exception, so that the terminal is put right on the way out."""
    raise SystemExit(128 + number)
