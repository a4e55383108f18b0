"""The agent's config, as its commands take it, and what can go wrong, in one line each."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from fairwarning.agent.config import BadConfig, read_file
from fairwarning.agent.identifying import needs_more
from fairwarning.agent.listener import CannotListen
from fairwarning.agent.memory import StateProblem
from fairwarning.agent.model import Config
from fairwarning.cli.problems import Problem
from fairwarning.client.http import BadAddress
from fairwarning.client.model import EventsUnavailable, Instance

DEFAULT_CONFIG = Path("/etc/fairwarning/agent.toml")

config_option = click.option(
    "--config",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_CONFIG,
    show_default=True,
    envvar="FAIRWARNING_AGENT_CONFIG",
    metavar="FILE",
    help="What to do; see check-config.",
)
json_option = click.option("--json", "is_json", is_flag=True, help="One JSON object on one line.")


@contextmanager
def problems_of(path: Path) -> Iterator[None]:
    """Whatever can go wrong, as one line that says what to do."""
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
    """Raises Problem or BadConfig."""
    try:
        return read_file(path)
    except OSError as problem:
        said = f"{path} cannot be read: {problem.strerror}; name a file with --config"
        raise Problem(said) from None


def who_am_i(config: Config, name: str) -> Instance:
    """The given name, the config's, or the service's word. Raises Problem."""
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
