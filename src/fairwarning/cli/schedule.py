"""`fairwarning schedule` announces a platform event."""

from typing import Any

import click

from fairwarning.cli.click_types import EVENT_TYPE, duration
from fairwarning.cli.common_options import Session, connected, why_option
from fairwarning.cli.completion import complete_target
from fairwarning.cli.times import NotATime, parse_time, to_wire
from fairwarning.cli.wait import conclude, wait_option

_EXAMPLES = """\b
Examples:
  fairwarning schedule reboot web-0
  fairwarning schedule freeze web-0 web-3 --notice 30m --duration 9s
  fairwarning schedule redeploy web --update-domain 1 --not-before 22:00
  fairwarning schedule reboot web-0 --wait && echo it is over
"""


@click.command(epilog=_EXAMPLES)
@click.argument("type", type=EVENT_TYPE, metavar="TYPE")
@click.argument(
    "targets", nargs=-1, required=True, metavar="TARGET...", shell_complete=complete_target
)
@click.option(
    "--notice",
    type=duration,
    metavar="D",
    help="Time from now until the event may start, such as 15m (default: the minimum of TYPE).",
)
@click.option(
    "--not-before",
    metavar="T",
    help="Earliest start of the event, instead of --notice: 22:00, 2026-11-16T22:00, or RFC 3339.",
)
@click.option(
    "--duration",
    type=duration,
    metavar="D",
    help="How long the impact of the event lasts, such as 10m.",
)
@click.option("--description", metavar="TEXT", help="Description that instances read in the event.")
@click.option(
    "--update-domain",
    type=click.IntRange(0),
    metavar="N",
    help="Announce the event for this update domain of TARGET, which must be a scope.",
)
@click.option(
    "--already-happened",
    is_flag=True,
    help="Announce a failure that has already happened, so the event is started at once.",
)
@wait_option
@why_option
@connected
def schedule(
    session: Session,
    type: str,
    targets: tuple[str, ...],
    update_domain: int | None,
    not_before: str | None,
    already_happened: bool,
    wait: bool,
    why: str | None,
    **details: str | None,
) -> None:
    """Announce an event of TYPE for each TARGET.

    TYPE is Freeze, Reboot, Redeploy, Preempt or Terminate. TARGET is an instance, or a scope
    with --update-domain. Without --notice and --not-before, the notice is the minimum of
    TYPE.
    """
    if not_before and details["notice"]:
        raise click.UsageError("--notice and --not-before say the same; give one of them")
    body: dict[str, Any] = {"type": type, **_aim(targets, update_domain)}
    body |= {name: value for name, value in details.items() if value is not None}
    if not_before:
        body["notBefore"] = read_time(session, "--not-before", not_before)
    if already_happened:
        body["alreadyHappened"] = True
    conclude(session, session.api.post("events", body=body, why=why), wait=wait)


def _aim(targets: tuple[str, ...], update_domain: int | None) -> dict[str, Any]:
    if update_domain is None:
        return {"targets": list(targets)}
    if len(targets) > 1:
        raise click.UsageError("--update-domain needs one TARGET, the scope; give only that")
    return {"scope": targets[0], "updateDomain": update_domain}


def read_time(session: Session, option: str, text: str) -> str:
    """Return the time in the form of the API. `22:00` is the next one by the server's clock.

    Raises `click.UsageError`, which names `option`, if `text` is no time.
    """
    try:
        return to_wire(parse_time(text, session.clock.now()))
    except NotATime as error:
        raise click.UsageError(f"{option}: {error}") from None
