"""`fairwarning fleet` plans and applies a fleet file, shows the fleet, and removes from it."""

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from fairwarning.cli.common_options import (
    Session,
    confirm,
    connected,
    why_option,
    yes_option,
)
from fairwarning.cli.completion import complete_target
from fairwarning.cli.fleet_import import import_fleet
from fairwarning.cli.fleet_upload import send_fleet
from fairwarning.cli.table_model import Shown, hint, line
from fairwarning.cli.tables.fleet import (
    cancelled_by,
    changes_list,
    changes_summary,
    fleet_page,
    kept_note,
)
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import counted, several
from fairwarning.common.text_files import read_bytes

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

Json = dict[str, Any]
_NAMES_SHOWN = 1_000
"""As many instances as a scale set can have, so all that leave without notice are named."""

_force_option = click.option(
    "--force",
    is_flag=True,
    help="Cancel the pending events of what is removed, instead of refusing to remove it.",
)
_without_notice_option = click.option(
    "--without-notice",
    is_flag=True,
    help="Remove instances that have a terminate notice at once, without a Terminate "
    "event. For admins; needs --why.",
)


@click.group(
    epilog="""\b
Examples:
  fairwarning fleet plan fleet.toml
  fairwarning fleet apply fleet.toml
  fairwarning fleet show --search web
  fairwarning fleet remove web-3
"""
)
def fleet() -> None:
    """Plan and apply a fleet file, show the fleet, and remove instances from it."""


fleet.add_command(import_fleet)


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
@_without_notice_option
@why_option
@connected
def apply(
    session: Session, file: str, yes: bool, force: bool, without_notice: bool, why: str | None
) -> None:
    """Make the fleet what FILE says, after showing what that changes.

    FILE is TOML, or JSON if its name ends in .json; - is standard input. If FILE leaves out an
    instance that has a terminate notice, and instances of its scope poll the endpoint, it gets a
    Terminate event and leaves the fleet when the event is over.
    """
    _refuse_no_reason(why, without_notice=without_notice)
    content, media_type = _read(file)
    said: dict[str, Any] = {"content": content, "media_type": media_type}
    if without_notice:
        said["withoutNotice"] = True
    try:
        plan = send_fleet(session.api, "POST", "fleet", "plan", **said)
        _warn(session, plan)
        if plan["changes"]:
            _ask(session, plan, yes=yes, force=force)
            plan_shown = plan["changes"]
            said["confirm"] = plan.get("confirm")
            plan = send_fleet(session.api, "PUT", "fleet", **said, force=force, why=why)
            if plan["changes"] != plan_shown:
                session.tell(line("The fleet changed meanwhile. What was done:"))
                session.tell(changes_list(plan["changes"]))
    except Problem as problem:
        raise _at_line(file, _in_our_words(problem)) from None
    done = changes_summary(plan["changes"]) or f"nothing to do: the fleet is what {file} says"
    session.answer(plan, lambda _: [line(f"Fleet: {done}.")])


@fleet.command(
    "plan",
    epilog="""\b
Examples:
  fairwarning fleet plan fleet.toml
  generate-fleet | fairwarning fleet plan - --json
""",
)
@click.argument("file", type=click.Path(allow_dash=True))
@connected
def plan_fleet(session: Session, file: str) -> None:
    """Show what `fleet apply FILE` would change, or all mistakes of FILE. Nothing is changed.

    FILE is TOML, or JSON if its name ends in .json; - is standard input.
    """
    content, media_type = _read(file)
    try:
        plan = send_fleet(
            session.api, "POST", "fleet", "plan", content=content, media_type=media_type
        )
    except Problem as problem:
        raise _at_line(file, problem) from None
    _warn(session, plan)
    session.answer(plan, lambda _: _plan_page(file, plan))


def _plan_page(file: str, plan: Json) -> list[Shown]:
    if not plan["changes"]:
        return [line(f"Fleet: nothing to do: the fleet is what {file} says.")]
    shown: list[Shown] = [changes_list(plan["changes"])]
    if plan.get("kept"):
        shown.append(line(kept_note(plan["kept"]), "dim"))
    ended = cancelled_by(plan["changes"])
    cancels = f" It cancels {counted(len(ended), 'pending event')}." if ended else ""
    summary = line(f"Plan: {changes_summary(plan['changes'])}.{cancels}")
    words = ["fairwarning", "fleet", "apply", file, *(["--force"] if ended else [])]
    return [*shown, summary, hint(f"To do this: {shlex.join(words)}")]


def _warn(session: Session, plan: Json) -> None:
    for warning in plan.get("warnings") or ():
        session.note(f"warning: {warning}")


def _refuse_no_reason(why: str | None, *, without_notice: bool) -> None:
    if without_notice and not why:
        raise click.UsageError("--without-notice needs --why: the history is to say the reason")


def _in_our_words(problem: Problem) -> Problem:
    """Return the problem. The message of `preview-needed` is replaced, because it names parameters
    of the API.
    """
    if problem.code != "preview-needed":
        return problem
    names = several(problem.body.get("instances") or [], _NAMES_SHOWN)
    return Problem(
        f"the fleet changed meanwhile, and {names} would leave without notice; nothing was done, "
        "look again",
        status=problem.status,
        code=problem.code,
    )


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
        content = sys.stdin.buffer.read() if file == "-" else read_bytes(file)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
    return content, "application/json" if file.endswith(".json") else "application/toml"


def _at_line(file: str, problem: Problem) -> Problem:
    """Put the file and line in front of each mistake, so that an editor can jump there."""
    if problem.status != 422 or not problem.body.keys() & {"line", "pointer"}:
        return problem
    _, *others = problem.body.get("problems") or [{}]
    message = problem.message.removeprefix(f"line {problem.body.get('line')}: ")
    return Problem(
        message,
        status=422,
        code=problem.code,
        place=_place(file, problem.body),
        others=[f"{_place(file, each)}: {each.get('detail')}" for each in others],
    )


def _place(file: str, mistake: Json) -> str:
    place = mistake.get("line") or mistake.get("pointer")
    return f"{file}:{place}" if place else file


@fleet.command(
    epilog="""\b
Examples:
  fairwarning fleet show
  fairwarning fleet show --search web --json | jq '.scopes[].instances[].name'
"""
)
@click.option(
    "--search", metavar="TEXT", help="Show only scopes that have this text in a name or an address."
)
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
@_without_notice_option
@why_option
@connected
def remove(
    session: Session, name: str, yes: bool, force: bool, without_notice: bool, why: str | None
) -> None:
    """Take NAME, an instance or a whole scope, out of the fleet.

    If an instance has a terminate notice, and instances of its scope poll the endpoint, it gets a
    Terminate event and leaves when the event is over, as with `fairwarning delete`. Every other
    instance leaves at once and without an event; its driver is not asked to do anything.
    """
    _refuse_no_reason(why, without_notice=without_notice)
    kind, what = _find(session.api, name)
    confirm(f"Remove {what}?", yes=yes)
    if without_notice:
        done = _remove_unwarned(session, kind, name, yes=yes, force=force, why=why)
    else:
        done = session.api.delete(kind, name, force=force, why=why)
    nothing = line(f"Nothing to do: {name} is leaving already, by a Terminate event.")
    session.answer(done, lambda _: [changes_list(done["changes"]) if done["changes"] else nothing])


def _remove_unwarned(
    session: Session, kind: str, name: str, *, yes: bool, force: bool, why: str | None
) -> Json:
    """Remove without notice. Shows the instances that lose their notice, and asks first."""
    said: dict[str, Any] = {"force": force, "why": why, "withoutNotice": True}
    try:
        return session.api.delete(kind, name, **said)
    except Problem as problem:
        if problem.code != "preview-needed":
            raise
        names = several(problem.body["instances"], _NAMES_SHOWN)
        session.tell(line(f"These leave at once, without their notice: {names}.", "red"))
        confirm("Remove them without notice?", yes=yes)
        said["confirm"] = problem.body["confirm"]
    try:
        return session.api.delete(kind, name, **said)
    except Problem as problem:
        raise _in_our_words(problem) from None


def _find(api: "Api", name: str) -> tuple[str, str]:
    """Return the API's collection for NAME, and its description. A standalone VM is a scope.

    Raises `Problem` if nothing has this name, or both a scope and an instance have it.
    """
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
