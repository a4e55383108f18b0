"""`fairwarning agent test` runs the real actions for a made-up event."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from fairwarning.agent import logs
from fairwarning.agent.cli.event_options import MadeUpEvent, event_options
from fairwarning.agent.cli.main import config_option, json_option, load, problems_of, who_am_i
from fairwarning.agent.config.model import Config
from fairwarning.agent.config.reader import TYPES
from fairwarning.agent.leftover_processes import take_over
from fairwarning.agent.program import real_handler_of
from fairwarning.agent.rules import choose
from fairwarning.agent.self_test import Report, play
from fairwarning.agent.state_file import StateFile, StateProblem
from fairwarning.client.model import Event, Instance
from fairwarning.common.command_errors import Problem

_EXAMPLES = """\b
Examples:
  fairwarning agent test reboot --config agent.toml
  fairwarning agent test preempt --yes
  fairwarning agent test freeze --duration 9s --source Platform
  fairwarning agent test freeze --cancelled
"""


@click.command(epilog=_EXAMPLES)
@click.argument("type_", metavar="TYPE", type=click.Choice(TYPES, case_sensitive=False))
@config_option
@click.option("--name", default="", help="Name of this VM (default: ask the service).")
@event_options
@click.option(
    "--cancelled", "is_cancelled", is_flag=True, help="Cancel the event before it starts."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def test(
    type_: str,
    path: Path,
    name: str,
    wanted: MadeUpEvent,
    is_cancelled: bool,
    yes: bool,
    is_json: bool,
) -> None:
    """Run the real actions for a made-up event of TYPE, and undo them.

    The event is scheduled, started and finished. Nothing is sent to the service. The options that
    describe the event are those of `agent explain`, and both pick the same rule.
    """
    logs.set_up("human")
    with problems_of(path):
        config = load(path)
        me = who_am_i(config, name)
    now = datetime.now(UTC)
    event = wanted.of(type_, me.name, now)
    rule = choose(config, event, me, now)
    if rule is None:
        raise Problem(f"no rule fits a {type_} of {me.name}; see agent explain --type {type_}")
    if not yes:
        _ask(event, rule.name)
    with _nobody_else(config):
        report = asyncio.run(_play(config, me, event, is_cancelled=is_cancelled))
    if is_json:
        shown = {"ok": not report.problems, "rule": rule.name, "problems": report.problems}
        click.echo(json.dumps(shown))
    elif not report.problems:
        click.echo("all actions worked, and all that can be undone was undone")
    for each in report.problems if not is_json else ():
        click.echo(each, err=True)
    if report.problems:
        raise Problem(f"{len(report.problems)} of the actions did not work as they should")


async def _play(config: Config, me: Instance, event: Event, *, is_cancelled: bool) -> Report:
    await take_over(Path(config.state))
    return await play(config, me, event, real_handler_of, is_cancelled=is_cancelled)


@contextmanager
def _nobody_else(config: Config) -> Iterator[None]:
    """Lock the state during the test. Raises Problem if an agent runs or has an event under way.

    Otherwise the test could undo what that agent has drained for a real event.
    """
    state = StateFile(Path(config.state))
    try:
        memory = state.open()
    except StateProblem as problem:
        raise Problem(f"{problem}; a rehearsal would undo what that agent has drained") from None
    try:
        if any(not each.is_over for each in memory.records.values()):
            raise Problem(
                "the agent has an event under way, and a rehearsal would undo its drain; wait "
                "until `fairwarning agent status` shows none"
            )
        yield
    finally:
        state.close()


def _ask(event: Event, rule: str) -> None:
    if not sys.stdin.isatty():
        raise Problem("this really runs the actions; say --yes where nobody can be asked")
    said = f"This really runs the actions of rule {rule!r} for a {event.type}. Go on?"
    click.confirm(said, abort=True, err=True)
