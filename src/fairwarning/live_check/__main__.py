"""`python -m fairwarning.live_check` runs the program under load for a given time."""

import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from fairwarning.cli.times import NotATime, parse_duration_ms
from fairwarning.live_check.checks import check
from fairwarning.live_check.console import play, tell
from fairwarning.live_check.disturbances import Disturbance, Kills, Pauses
from fairwarning.live_check.figures import Figures
from fairwarning.live_check.nodes import CannotServe, Node, serve_options
from fairwarning.live_check.records import BadRecords, read_folder
from fairwarning.live_check.rounds import RoundSettings
from fairwarning.live_check.run import Outcome, Run, RunSettings

_POSTGRES = ("postgresql://", "postgres://")
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
@click.option(
    "--workers",
    type=click.IntRange(0, 9),
    default=0,
    show_default=True,
    help="The --workers of each server: how many more processes answer polls.",
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
    "--upgrade-from",
    "first_program",
    type=click.Path(path_type=Path, file_okay=False, exists=True, resolve_path=True),
    metavar="FOLDER",
    help="The folder `src` of another version, which each server runs until it is first restarted.",
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
    workers: int,
    seed: int | None,
    round_s: float,
    kill_every_s: float,
    pause_every_s: float | None,
    lease_s: float,
    end_within_s: float,
    first_program: Path | None,
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
        load_s=load_s,
        round_s=round_s,
        seed=str(random.SystemRandom().randrange(10**6) if seed is None else seed),
        round=RoundSettings(lease_s=lease_s, end_within_s=end_within_s),
        keeps_all=folder is not None,
    )
    url = store if is_postgres else f"sqlite:///{home.absolute() / 'store.db'}"
    options = serve_options(url, lease_s, workers)
    count = nodes or (3 if is_postgres else 1)
    servers = [
        Node(number + 1, home.absolute(), options, first_program=first_program)
        for number in range(count)
    ]
    disturbances: list[Disturbance] = [Kills(kill_every_s)]
    if pause_every_s is not None:
        disturbances.append(Pauses(pause_every_s, lease_s))
    click.echo(f"seed {settings.seed}, records in {home}", err=True)
    try:
        run = Run(settings, home.absolute(), servers, disturbances)
        outcome = asyncio.run(play(run, asyncio.Event()))
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
    tell(outcome, as_json=as_json)
    sys.exit(1 if outcome.findings else 0)


def _check_again(folder: Path, *, as_json: bool) -> None:
    try:
        records = read_folder(folder)
    except BadRecords as problem:
        raise click.UsageError(str(problem)) from None
    findings = check(records)
    figures = Figures()
    figures.add(records, findings, 0.0)
    tell(Outcome(figures, findings, folder), as_json=as_json)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
