"""`fairwarning clock` shows the server's time, and moves a virtual clock."""

from datetime import datetime
from typing import Any

import click

from fairwarning.cli.click_types import duration
from fairwarning.cli.common_options import Session, connected, why_option
from fairwarning.cli.table_model import Lines, line
from fairwarning.cli.times import absolute, from_wire


@click.group(
    epilog="""\b
Examples:
  fairwarning clock show
  fairwarning clock advance 15m
"""
)
def clock() -> None:
    """Show the server's clock, and move it forward if it is virtual."""


@clock.command(epilog="Example: fairwarning clock show --json")
@connected
def show(session: Session) -> None:
    """Show the server's time."""
    face = session.api.get("clock")
    session.answer(face, lambda _: [_line(face)])


@clock.command(epilog="Example: fairwarning clock advance 15m")
@click.argument("by", type=duration, metavar="D")
@why_option
@connected
def advance(session: Session, by: str, why: str | None) -> None:
    """Move the server's virtual clock forward by D, and wait until all that became due has
    happened.

    Only a server that was started with `--clock virtual` has a virtual clock.
    """
    face = session.api.post("clock", "advance", body={"by": by}, why=why)
    session.answer(face, lambda _: [_line(face)])


def _line(face: dict[str, Any]) -> Lines:
    now: datetime = from_wire(face["now"])
    return line(f"{absolute(now)}, {_kind(face)}")


def _kind(face: dict[str, Any]) -> str:
    if not face["virtual"]:
        return "real"
    speed = face.get("speed", 0)
    return f"virtual, {speed:g} times as fast as the real one" if speed else "virtual"
