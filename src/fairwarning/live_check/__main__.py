"""`python -m fairwarning.live_check` runs the program under load for a given time."""

import asyncio
import contextlib
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click

from fairwarning.cli.times import NotATime, parse_duration_ms
from fairwarning.live_check.checks import check
from fairwarning.live_check.figures import Figures, finding_lines
from fairwarning.live_check.nodes import CannotServe
from fairwarning.live_check.records import BadRecords, Records, read_folder
from fairwarning.live_check.rounds import RoundSettings
from fairwarning.live_check.run import Outcome, Run, RunSettings

_POSTGRES = ("postgresql://", "postgres://")
_PROGRESS_TTY_S = 1.0  # The line is replaced, so it may be frequent.
_PROGRESS_S = 15.0  # A log must not be filled with lines of progress.
_EXAMPLES = """\b
Examples:
  python -m fairwarning.live_check --for 60s
  python -m fairwarning.live_check --for 1h --store postgresql://fw@localhost/scratch --nodes 3
  python -m fairwarning.live_check --for 10m --kill-every 5s --lease 30s --json
  python -m fairwarning.live_check --check live-check-4711/round-0001
"""


def _seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = parse_duration_ms(value) / 1000
    except NotATime as problem:
        raise click.BadParameter(str(problem)) from None
    if seconds <= 0:
        raise click.BadParameter("it must be longer than nothing")
    return seconds


def _duration_option(
    *names: str, default: str | None, help: str
) -> Callable[[click.decorators.FC], click.decorators.FC]:
    return click.option(
        *names, default=default, callback=_seconds, metavar="DURATION", show_default=True, help=help
    )


@click.command(epilog=_EXAMPLES)
@click.option(
    "--store",
    default="sqlite",
    show_default=True,
    metavar="sqlite|URL",
    help="The store: `sqlite` for a new file, or the postgresql://… URL of an empty database.",
)
@_duration_option("--for", "load_s", default="60s", help="How long the servers are under load.")
@click.option(
    "--nodes",
    type=click.IntRange(1, 9),
    help="How many servers share a PostgreSQL store. [default: 3; on SQLite 1]",
)
@click.option("--seed", type=int, help="Repeat the random choices of a run; the timing differs.")
@_duration_option(
    "--round", "round_s", default="2m", help="Check all promises each time after this much load."
)
@_duration_option(
    "--kill-every", "kill_every_s", default="15s", help="How often to kill or stop a server."
)
@_duration_option(
    "--pause-every",
    "pause_every_s",
    default=None,
    help="How often to pause a server (SIGSTOP) for longer than its lease. [default: never]",
)
@_duration_option("--lease", "lease_s", default="10s", help="The --lease of the servers.")
@_duration_option(
    "--end-within",
    "end_within_s",
    default="5m",
    help="How long after the load all events must have ended.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep all logs and records in this new folder. Without it, they are kept only if a "
    "promise was broken, in a temporary folder whose name is printed.",
)
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Start no servers. Check the records of an earlier round in this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def main(
    store: str,
    load_s: float,
    nodes: int | None,
    seed: int | None,
    round_s: float,
    kill_every_s: float,
    pause_every_s: float | None,
    lease_s: float,
    end_within_s: float,
    folder: Path | None,
    checked: Path | None,
    as_json: bool,
) -> None:
    """Run the real program under load, kill it now and then, and check what it promises.

    Each server is a process of its own. Its driver takes about 0.4 s for an impact. Ctrl-C ends the
    load and checks what has happened so far; a second Ctrl-C ends everything at once. The exit code
    is 1 if a promise was broken.
    """
    if checked is not None:
        _check_again(checked, as_json=as_json)
        return
    is_postgres = store.startswith(_POSTGRES)
    if not is_postgres and store != "sqlite":
        raise click.UsageError(f"--store {store}: write sqlite, or the URL of a PostgreSQL")
    if not is_postgres and (nodes or 1) > 1:
        raise click.UsageError("--nodes: a SQLite file has one server; give --store postgresql://…")
    if folder is not None and folder.exists():
        raise click.UsageError(f"--folder {folder}: it is there already; name a new one")
    home = folder or Path(tempfile.mkdtemp(prefix="live-check-"))
    home.mkdir(parents=True, exist_ok=True)
    settings = RunSettings(
        store=store if is_postgres else f"sqlite:///{home.absolute() / 'store.db'}",
        nodes=nodes or (3 if is_postgres else 1),
        load_s=load_s,
        round_s=round_s,
        seed=str(random.SystemRandom().randrange(10**6) if seed is None else seed),
        round=RoundSettings(
            kill_every_s=kill_every_s,
            pause_every_s=pause_every_s,
            lease_s=lease_s,
            end_within_s=end_within_s,
        ),
        keeps_all=folder is not None,
    )
    click.echo(f"seed {settings.seed}, records in {home}", err=True)
    try:
        outcome = asyncio.run(_play(settings, home.absolute()))
    except CannotServe as problem:
        click.echo(f"live check: {problem}; its logs are in {home}", err=True)
        sys.exit(2)
    except asyncio.CancelledError:
        click.echo(
            f"live check: ended at once and not checked; its records are in {home}", err=True
        )
        sys.exit(130)
    if folder is None and not outcome.findings:
        shutil.rmtree(home, ignore_errors=True)
    _tell(outcome, as_json=as_json)
    sys.exit(1 if outcome.findings else 0)


async def _play(settings: RunSettings, folder: Path) -> Outcome:
    run, stopping = Run(settings, folder), asyncio.Event()
    playing = asyncio.create_task(run.play(stopping, _tell_line))

    def interrupt() -> None:
        if stopping.is_set():
            playing.cancel()
            return
        click.echo("\nending; Ctrl-C again to end at once", err=True)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    progress = asyncio.create_task(_show_progress(run, settings))
    try:
        return await playing
    finally:
        progress.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await progress


def _tell_line(text: str) -> None:
    """Prints a line to standard error. On a terminal it replaces the line of progress."""
    click.echo(f"\r\033[K{text}" if sys.stderr.isatty() else text, err=True)


async def _show_progress(run: Run, settings: RunSettings) -> None:
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


def _check_again(folder: Path, *, as_json: bool) -> None:
    try:
        records = read_folder(folder)
    except BadRecords as problem:
        raise click.UsageError(str(problem)) from None
    findings = check(records)
    figures = Figures()
    figures.add(records, findings, 0.0)
    _tell(Outcome(figures, findings, folder), as_json=as_json)
    sys.exit(1 if findings else 0)


def _tell(outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        findings = [finding._asdict() for finding in outcome.findings]
        folder = str(outcome.kept) if outcome.findings else None
        told = {**outcome.figures.to_json(), "findings": findings, "folder": folder}
        click.echo(json.dumps(told))
        return
    click.echo("\n".join(outcome.figures.lines()))
    if not outcome.findings:
        click.echo("every promise kept")
        return
    click.echo("\n".join(finding_lines(outcome.findings)))
    click.echo(f"The records are in {outcome.kept}; docs/live-check.md says how to read them.")


if __name__ == "__main__":
    main()
