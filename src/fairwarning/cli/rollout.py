"""`fairwarning rollout`: maintenance through a fleet, one update domain at a time."""

from collections.abc import Callable
from typing import Any

import click

from fairwarning.cli.completing import complete_rollout, complete_scope
from fairwarning.cli.session import Session, confirm, connected, why_option, yes_option
from fairwarning.cli.tables.rollouts import plan_page, rollout_page, rollouts_table
from fairwarning.cli.text import counted
from fairwarning.cli.types import duration
from fairwarning.core.refusals import Refused
from fairwarning.core.rollouts.windows import parse_blackout, parse_window

Json = dict[str, Any]
_TYPE = click.Choice(["Freeze", "Reboot", "Redeploy"], case_sensitive=False)


def _each(parse: Callable[[str], Any]) -> Callable[..., list[Any]]:
    def callback(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[Any]:
        try:
            return [parse(value) for value in values]
        except Refused as refused:
            raise click.BadParameter(refused.message) from None

    return callback


def _window(text: str) -> Json:
    window = parse_window(text)
    return {"days": list(window.day_names), "from": window.opens, "to": window.closes}


def _blackout(text: str) -> str:
    return str(parse_blackout(text))


_PLAN = (
    click.argument("scopes", nargs=-1, metavar="SCOPE...", shell_complete=complete_scope),
    click.option("--type", type=_TYPE, required=True, help="What happens to each instance."),
    click.option("--name", metavar="TEXT", help="What you call it."),
    click.option("--description", metavar="TEXT", help="What instances read about it."),
    click.option("--scopes-at-once", type=click.IntRange(1), metavar="N", help="Default 1."),
    click.option("--pause", type=duration, metavar="D", help="Between two steps of a scope."),
    click.option(
        "--window",
        "windows",
        multiple=True,
        callback=_each(_window),
        metavar="W",
        help="Impact only then: 'mon-fri 22:00-04:00'. May be given several times.",
    ),
    click.option("--time-zone", metavar="Z", help="Of windows and blackouts; default UTC."),
    click.option(
        "--blackout",
        "blackouts",
        multiple=True,
        callback=_each(_blackout),
        metavar="B",
        help="Never then: 2026-12-24 or 2026-12-24/2026-12-26. May be given several times.",
    ),
    click.option("--notice", type=duration, metavar="D", help="More notice than the type needs."),
    click.option("--duration", type=duration, metavar="D", help="How long each impact takes."),
    click.option("--keep-going", is_flag=True, help="Do not stop when an event fails."),
    click.option("--whole-fleet", is_flag=True, help="All scopes, instead of naming some."),
)


def _planned(command: Callable[..., Any]) -> Callable[..., Any]:
    for parameter in reversed(_PLAN):
        command = parameter(command)
    return command


def rollout_body(
    *, scopes: tuple[str, ...], whole_fleet: bool, keep_going: bool, **given: Any
) -> Json:
    """The API's form of what was asked for. Only --whole-fleet may mean all of it."""
    if bool(scopes) == whole_fleet:
        raise click.UsageError("name the scopes, or say --whole-fleet for all of them")
    body: Json = {"scopes": list(scopes), "stopOnFailure": not keep_going}
    names = {"scopes_at_once": "scopesAtOnce", "time_zone": "timeZone"}
    body |= {names.get(name, name): value for name, value in given.items() if value}
    return body


@click.group(
    epilog="""\b
Examples:
  fairwarning rollout plan web workers --type reboot
  fairwarning rollout start web --type redeploy --window 'sat,sun 01:00-05:00'
  fairwarning rollout pause 20261116-220000-4f2a9c
"""
)
def rollout() -> None:
    """Take maintenance through a fleet, one update domain at a time."""


@rollout.command(
    epilog="""\b
Examples:
  fairwarning rollout plan web --type reboot --pause 10m
  fairwarning rollout plan --whole-fleet --type freeze --window 22:00-04:00 --json
"""
)
@_planned
@connected
def plan(session: Session, **given: Any) -> None:
    """Show what a rollout would do and when. Nothing is announced."""
    found = session.api.post("rollouts", "plan", body=rollout_body(**given), repeatable=False)
    session.answer(found, lambda now: plan_page(found, now))


@rollout.command(
    epilog="""\b
Examples:
  fairwarning rollout start web workers --type reboot --scopes-at-once 2
  fairwarning rollout start web --type redeploy --window 22:00-04:00 --time-zone Europe/Berlin
  fairwarning rollout start --whole-fleet --type reboot --blackout 2026-12-24/2026-12-26 --yes
"""
)
@_planned
@yes_option
@why_option
@connected
def start(session: Session, yes: bool, why: str | None, **given: Any) -> None:
    """Start a rollout, after showing its plan."""
    body = rollout_body(**given)
    planned = session.api.post("rollouts", "plan", body=body, repeatable=False)
    if yes:
        for warning in planned["warnings"]:
            session.note(f"warning: {warning}")
    else:
        session.tell(*plan_page(planned, session.clock.now()))
        confirm(f"Start these {counted(len(planned['steps']), 'step')}?", yes=False)
    made = session.api.post("rollouts", body=body, why=why)
    session.answer(made, lambda now: rollout_page(made, now))


@rollout.command("list", epilog="Example: fairwarning rollout list --limit 5")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@connected
def list_rollouts(session: Session, limit: int) -> None:
    """List the rollouts, the newest first."""
    found = session.api.pages("rollouts", key="rollouts", limit=limit)
    session.answer(found, lambda now: [rollouts_table(found["rollouts"], now)])


@rollout.command(epilog="Example: fairwarning rollout show 20261116-220000-4f2a9c")
@click.argument("id", shell_complete=complete_rollout)
@connected
def show(session: Session, id: str) -> None:
    """Show the rollout ID and each of its steps."""
    found = session.api.get("rollouts", id)
    session.answer(found, lambda now: rollout_page(found, now))


def _verb(name: str, told: str) -> None:
    @rollout.command(
        name, help=told, epilog=f"Example: fairwarning rollout {name} 20261116-220000-4f2a9c"
    )
    @click.argument("id", shell_complete=complete_rollout)
    @why_option
    @connected
    def command(session: Session, id: str, why: str | None) -> None:
        found = session.api.post("rollouts", id, name, why=why)
        session.answer(found, lambda now: rollout_page(found, now))


_verb("pause", "Announce nothing more for the rollout ID. What is announced goes on.")
_verb("resume", "Go on with the rollout ID.")
_verb("cancel", "End the rollout ID. What has started goes on to its end.")
