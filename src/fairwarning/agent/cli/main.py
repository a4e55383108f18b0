"""`fairwarning agent` runs the agent of a VM. Its subcommands help to set it up."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from fairwarning.agent import logs
from fairwarning.agent.config.model import Config
from fairwarning.agent.config.reader import read_file
from fairwarning.agent.config.table import BadConfig
from fairwarning.agent.http_listener import CannotListen
from fairwarning.agent.state_file import StateProblem
from fairwarning.agent.whoami import needs_more
from fairwarning.client.http import BadAddress
from fairwarning.client.model import EventsUnavailable, Instance
from fairwarning.common.command_errors import Problem
from fairwarning.common.lazy_group import LazyGroup

_HERE = "fairwarning.agent.cli"
COMMANDS = {
    "check-config": (
        f"{_HERE}.check_config:check_config",
        "Report every mistake in FILE.",
    ),
    "explain": (
        f"{_HERE}.explain:explain",
        "Show which rule an event would take, and why.",
    ),
    "test": (
        f"{_HERE}.test:test",
        "Play a made-up event of TYPE through the real actions.",
    ),
    "status": (f"{_HERE}.status:status", "Show what the agent is doing."),
}
_EXAMPLES = """\b
Examples:
  fairwarning agent --config agent.toml
  fairwarning agent --config agent.toml --dry-run
  fairwarning agent check-config agent.toml
  fairwarning agent explain --config agent.toml --type Reboot
  fairwarning agent test reboot --config agent.toml
  fairwarning agent status --config agent.toml
"""
DEFAULT_CONFIG = Path("/etc/fairwarning/agent.toml")
config_option = click.option(
    "--config",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_CONFIG,
    show_default=True,
    envvar="FAIRWARNING_AGENT_CONFIG",
    metavar="FILE",
    help="TOML file with the config of the agent.",
)


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True, epilog=_EXAMPLES)
@config_option
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Poll and log what would be done, but do nothing."
)
@click.option("--once", "is_once", is_flag=True, help="Run the steps that are due now, and exit.")
@click.option(
    "--log-format",
    "log_format",
    type=click.Choice(logs.FORMATS),
    default="human",
    show_default=True,
    help="Format of the log on standard error.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Log messages of this level and of more severe ones.",
)
@click.pass_context
def agent(
    ctx: click.Context, path: Path, is_dry: bool, is_once: bool, log_format: str, log_level: str
) -> None:
    """Run the agent, which drains this VM before each event and restores it afterwards."""
    if ctx.invoked_subcommand is not None:
        return
    from fairwarning.agent.program import run_agent  # noqa: PLC0415  (the others need less)

    logs.set_up(log_format, log_level)
    with problems_of(path):
        config = load(path)
        work = run_agent(config, lambda: read_file(path), is_dry=is_dry, is_once=is_once)
        asyncio.run(work)


json_option = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object on one line."
)


@contextmanager
def problems_of(path: Path) -> Iterator[None]:
    """Turn every known exception into a Problem, which is one line that says what to do."""
    try:
        yield
    except BadConfig as bad:
        first = bad.mistakes[0]
        more = f" (and {len(bad.mistakes) - 1} more; see agent check-config)"
        rest = more if len(bad.mistakes) > 1 else ""
        raise Problem(f"{first.message}{rest}", place=f"{path}:{first.line}") from None
    except (StateProblem, CannotListen) as problem:
        raise Problem(str(problem)) from None
    except BadAddress as problem:  # The config's has been checked.
        raise Problem(f"FAIRWARNING_METADATA_URL: {problem}") from None
    except EventsUnavailable as problem:
        said = f"{problem}; set `endpoint` in the config if the service is elsewhere"
        raise Problem(said) from None


def load(path: Path) -> Config:
    """Read the config. Raises Problem if the file cannot be read, and BadConfig for mistakes."""
    try:
        return read_file(path)
    except OSError as problem:
        said = f"{path} cannot be read: {problem.strerror}; name a file with --config"
        raise Problem(said) from None


def who_am_i(config: Config, name: str) -> Instance:
    """Return this VM. Its name is `name`, else the config's, else the service's.

    The service is asked only if needed. Raises Problem if no name is known.
    """
    name = name or config.name
    if name and not needs_more(config):
        return Instance(name=name)
    from fairwarning.client import ScheduledEvents  # noqa: PLC0415  (only if it must be asked)

    try:
        with ScheduledEvents(config.endpoint or None) as service:
            me = service.instance()
            return replace(me, name=name or me.name)
    except EventsUnavailable as problem:
        if not name:
            raise Problem(f"cannot ask who this VM is: {problem}; say it with --name") from None
        said = f"the service cannot be asked, so of {name} nothing is known but its name"
        click.echo(f"fairwarning: {said}", err=True)
        return Instance(name=name)
