"""Plays a run at the console: it handles Ctrl-C, and shows the progress and the results."""

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections import Counter
from typing import Any

import click

from fairwarning.live_check.figures import finding_lines
from fairwarning.live_check.records import Records
from fairwarning.live_check.run import Outcome, Run

_PROGRESS_TTY_S = 1.0  # The line is replaced, so it may be frequent.
_PROGRESS_S = 15.0  # A log must not be filled with lines of progress.


async def play(run: Run, stopping: asyncio.Event) -> Outcome:
    """Plays the run with its progress on standard error. The first Ctrl-C sets `stopping`, which
    ends the load. Raises CannotServe if it cannot begin, and CancelledError after a second Ctrl-C.
    """
    playing = asyncio.create_task(run.play(stopping, tell_line))

    def interrupt() -> None:
        if stopping.is_set():
            playing.cancel()
            return
        click.echo("\nending; Ctrl-C again to end at once", err=True)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    progress = asyncio.create_task(_show_progress(run))
    try:
        return await playing
    finally:
        progress.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await progress


def tell_line(text: str) -> None:
    """Prints a line to standard error. On a terminal it replaces the line of progress."""
    click.echo(f"\r\033[K{text}" if sys.stderr.isatty() else text, err=True)


async def _show_progress(run: Run) -> None:
    is_terminal, began_s = sys.stderr.isatty(), time.monotonic()
    while True:
        await asyncio.sleep(_PROGRESS_TTY_S if is_terminal else _PROGRESS_S)
        if run.records is not None:
            line = _progress_line(run.records, time.monotonic() - began_s)
            click.echo(f"\r\033[K{line}" if is_terminal else line, err=True, nl=not is_terminal)


def _progress_line(records: Records, passed_s: float) -> str:
    changes = Counter(change.change for change in records.nodes)
    answered = sum(request.status is not None for request in records.requests)
    return (
        f"{passed_s:.0f} s: {answered} requests in this round, {len(records.polls)} polls, "
        f"{len(records.approvals)} approvals, {changes['killed']} kills"
    )


def tell(outcome: Outcome, *, as_json: bool) -> None:
    """Prints the figures and findings to standard output."""
    if as_json:
        click.echo(json.dumps(results(outcome)))
        return
    click.echo("\n".join(outcome.figures.lines()))
    if not outcome.findings:
        click.echo("every promise kept")
        return
    click.echo("\n".join(finding_lines(outcome.findings)))
    click.echo(f"The records are in {outcome.kept}; docs/live-check.md says how to read them.")


def results(outcome: Outcome) -> dict[str, Any]:
    findings = [finding._asdict() for finding in outcome.findings]
    folder = str(outcome.kept) if outcome.findings else None
    return {**outcome.figures.to_json(), "findings": findings, "folder": folder}
