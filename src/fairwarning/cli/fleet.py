"""`fairwarning fleet`: declare the fleet, see it, take something out of it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairwarning.cli.completing import complete_target
from fairwarning.cli.listing import line
from fairwarning.cli.problems import Problem
from fairwarning.cli.session import Session, confirm, connected, why_option, yes_option
from fairwarning.cli.tables.fleet import (
    cancelled_by,
    changes_list,
    changes_summary,
    fleet_page,
    kept_note,
)
from fairwarning.cli.text import counted

if TYPE_CHECKING:
    from fairwarning.cli.client import Api

Json = dict[str, Any]

_force_option = click.option(
    "--force", is_flag=True, help="Also cancel pending events of what is removed."
)


@click.group(
    epilog="""\b
Examples:
  fairwarning fleet apply fleet.toml
  fairwarning fleet show --search web
  fairwarning fleet remove web-3
"""
)
def fleet() -> None:
    """Declare and see the fleet."""


@fleet.command(
    epilog="""\b
Examples:
  fairwarning fleet apply fleet.toml
  fairwarning fleet apply fleet.toml --yes --why "second rack"
  generate-fleet | fairwarning fleet apply - --yes
"""
)
@click.argument("file", type=click.Path(allow_dash=True))
@yes_option
@_force_option
@why_option
@connected
def apply(session: Session, file: str, yes: bool, force: bool, why: str | None) -> None:
    """Make the fleet what FILE says, after showing what that changes.

    FILE is TOML, or JSON if its name ends in .json; - is standard input.
    """
    content, media_type = _read(file)
    try:
        plan = session.api.send("POST", "fleet", "plan", content=content, media_type=media_type)
        if plan["changes"]:
            _ask(session, plan, yes=yes, force=force)
            plan_shown = plan["changes"]
            plan = session.api.send(
                "PUT", "fleet", content=content, media_type=media_type, force=force, why=why
            )
            if plan["changes"] != plan_shown:
                session.tell(line("The fleet changed meanwhile. What was done:"))
                session.tell(changes_list(plan["changes"]))
    except Problem as problem:
        raise _at_line(file, problem) from None
    done = changes_summary(plan["changes"]) or f"nothing to do: the fleet is what {file} says"
    session.answer(plan, lambda _: [line(f"Fleet: {done}.")])


def _ask(session: Session, plan: Json, *, yes: bool, force: bool) -> None:
    session.tell(changes_list(plan["changes"]))
    if plan.get("kept"):
        session.tell(line(kept_note(plan["kept"]), "dim"))
    ended = cancelled_by(plan["changes"])
    if ended and not force:
        raise Problem(
            f"this would cancel {counted(len(ended), 'pending event')}; "
            "say --force if you mean it, or wait until they have ended"
        )
    confirm(f"Make {counted(len(plan['changes']), 'change')}?", yes=yes)


def _read(file: str) -> tuple[bytes, str]:
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
    return content, "application/json" if file.endswith(".json") else "application/toml"


def _at_line(file: str, problem: Problem) -> Problem:
    """With the place in front, so that an editor can jump there."""
    place = problem.body.get("line") or problem.body.get("pointer")
    if problem.status != 422 or place is None:
        return problem
    message = problem.message.removeprefix(f"line {place}: ")
    return Problem(message, status=422, code=problem.code, place=f"{file}:{place}")


@fleet.command(
    epilog="""\b
Examples:
  fairwarning fleet show
  fairwarning fleet show --search web --json | jq '.scopes[].instances[].name'
"""
)
@click.option("--search", metavar="TEXT", help="Only scopes that have this in a name or address.")
@connected
def show(session: Session, search: str | None) -> None:
    """Show the scopes and their instances."""
    found = session.api.pages("fleet", key="scopes", search=search)
    session.answer(found, lambda _: fleet_page(found["scopes"]))


@fleet.command(
    epilog="""\b
Examples:
  fairwarning fleet remove web-3
  fairwarning fleet remove availability-set/web --yes --force
"""
)
@click.argument("name", shell_complete=complete_target)
@yes_option
@_force_option
@why_option
@connected
def remove(session: Session, name: str, yes: bool, force: bool, why: str | None) -> None:
    """Take NAME, an instance or a whole scope, out of the fleet.

    It is gone from the fleet at once and without an event; to let it be warned first,
    use `fairwarning delete`.
    """
    kind, what = _find(session.api, name)
    confirm(f"Remove {what}?", yes=yes)
    done = session.api.delete(kind, name, force=force, why=why)
    session.answer(done, lambda _: [changes_list(done["changes"])])


def _find(api: "Api", name: str) -> tuple[str, str]:
    """Which of the two it is. A VM of its own is both, and then it is the scope."""
    scope, instance = _get(api, "scopes", name), _get(api, "instances", name)
    if scope is None and instance is None:
        raise Problem(
            f"no scope and no instance is called {name!r}; see them with `fairwarning fleet show`"
        )
    if scope is None:
        return "instances", f"instance {name}"
    if instance is not None and len(scope["instances"]) > 1:
        raise Problem(
            f"{name!r} is a scope and an instance; write {scope['id']} for the scope or "
            f"{instance['scope']}/{instance['name']} for the instance"
        )
    return "scopes", f"scope {scope['id']} with {counted(len(scope['instances']), 'instance')}"


def _get(api: "Api", kind: str, name: str) -> Json | None:
    try:
        return api.get(kind, name)
    except Problem as problem:
        if problem.status == 404:
            return None
        raise
