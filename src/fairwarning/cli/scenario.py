"""`fairwarning scenario` lists, prints and plays scenarios."""

import click

from fairwarning.cli.click_types import Number, host_and_port
from fairwarning.cli.common_options import Session, connected, why_option
from fairwarning.cli.completion import complete_instance, complete_scenario
from fairwarning.cli.output import draw, echo_json, make_console
from fairwarning.cli.table_model import Cell, Column, Listing

_COLUMNS = (
    Column("NAME", whole=True),
    Column("TITLE", wraps=True),
    Column("INSTANCES", wraps=True),
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    epilog="""\b
Examples:
  fairwarning scenario list
  fairwarning scenario run user-reboot --serve
  fairwarning scenario show live-migration > mine.toml
"""
)
def scenario() -> None:
    """List, show and play scenarios: scripts of what happens to instances."""


@scenario.command("list", epilog="Example: fairwarning scenario list --json")
@_json_option
def list_scenarios(as_json: bool) -> None:
    """List the scenarios that come with the program."""
    from fairwarning.cli.scenario_run import find_scenario  # noqa: PLC0415  help comes at once
    from fairwarning.scenarios import library  # noqa: PLC0415
    from fairwarning.scenarios.instance_mapping import instances_of  # noqa: PLC0415

    found = [(name, find_scenario(name)) for name in library.names()]
    if as_json:
        shown = [
            {
                "name": name,
                "title": each.title,
                "description": " ".join(each.description.split()),
                "instances": list(instances_of(each)),
            }
            for name, each in found
        ]
        echo_json({"scenarios": shown})
        return
    rows = tuple(
        (Cell(name, "bold"), Cell(each.title), Cell(", ".join(instances_of(each))))
        for name, each in found
    )
    draw(
        make_console(is_capped=True), Listing(columns=_COLUMNS, rows=rows, empty="There are none.")
    )


@scenario.command(epilog="Example: fairwarning scenario show user-reboot > mine.toml")
@click.argument("name", shell_complete=complete_scenario)
@_json_option
def show(name: str, as_json: bool) -> None:
    """Print the TOML of the scenario NAME, which you can edit to make your own."""
    from fairwarning.cli.scenario_run import library_text  # noqa: PLC0415

    text = library_text(name)
    if as_json:
        echo_json({"name": name, "toml": text})
    else:
        click.echo(text, nl=False)


@scenario.command(
    epilog="""\b
Examples:
  fairwarning scenario run live-migration
  fairwarning scenario run user-reboot --speed 60 --target db
  fairwarning scenario run mine.toml --serve --metadata 127.0.0.1:8169
  fairwarning scenario run recorded.jsonl --serve --no-wait
"""
)
@click.argument("scenario", metavar="NAME|FILE", shell_complete=complete_scenario)
@click.option(
    "--speed",
    type=Number(0.001, 100_000),
    metavar="N",
    help="How many seconds of the scenario pass in each real second (default: as fast as "
    "possible on a virtual clock).",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="INSTANCE",
    shell_complete=complete_instance,
    help="Instance that takes the place of an instance of the scenario. Give it once for each, in "
    "the scenario's order (default: the scenario's own names).",
)
@click.option("--serve", "serves", is_flag=True, help="Start a server for this run only.")
@click.option(
    "--metadata",
    type=host_and_port,
    metavar="HOST:PORT",
    help="Address of the metadata endpoint of --serve (default: a free port of 127.0.0.1).",
)
@click.option(
    "--no-wait",
    is_flag=True,
    help="Start at once. Without it, --serve waits until an instance polls.",
)
@why_option
@connected
def run(
    session: Session,
    scenario: str,
    speed: float | None,
    targets: tuple[str, ...],
    serves: bool,
    metadata: tuple[str, int] | None,
    no_wait: bool,
    why: str | None,
) -> None:
    """Play the scenario NAME, or the one in FILE (TOML, or what `record` wrote).

    On a server with a virtual clock, the run advances the clock; with a real clock, it waits.
    With --serve, the run starts when a handler polls, and goes on at speed 60 unless --speed is
    given. The exit code is 1 if an expectation of the scenario is not met.
    """
    from fairwarning.cli.scenario_run import (  # noqa: PLC0415
        RunRequest,
        play_on_private_server,
        play_on_server,
    )

    if not serves and (metadata is not None or no_wait):
        raise click.UsageError("--metadata and --no-wait belong to --serve; give that too")
    asked = RunRequest(
        scenario=scenario, speed=speed, targets=targets, why=why or f"scenario {scenario}"
    )
    if serves:
        play_on_private_server(session, asked, metadata or ("127.0.0.1", 0), waits=not no_wait)
    else:
        play_on_server(session, asked)
