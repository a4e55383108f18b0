"""`fairwarning scale`, `replace`, `model`, `upgrade` and `policy` change a scale set."""

import sys
from typing import Any

import click

from fairwarning.cli.common_options import Session, confirm, connected, why_option, yes_option
from fairwarning.cli.completion import complete_instance, complete_scale_set, complete_scope
from fairwarning.cli.tables.scale_sets import model_page, policy_page, resized_page, upgraded_page
from fairwarning.cli.times import NotATime, duration_text
from fairwarning.cli.wait import refuse_unfinished, wait_for, wait_option
from fairwarning.common.escape import several
from fairwarning.core.notice import parse_reimage_notice_ms, parse_terminate_notice_ms
from fairwarning.core.refusals import Refused

Json = dict[str, Any]
_NONE = "none"
_PARSERS = {
    "terminate_notice": parse_terminate_notice_ms,
    "reimage_notice": parse_reimage_notice_ms,
}

_set_argument = click.argument("set", shell_complete=complete_scale_set)


def _notice(_: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Return the notice in ISO 8601, or "none". Raises `click.BadParameter` if it is neither."""
    if text is None or text == _NONE:
        return text
    try:
        return duration_text(text)
    except NotATime:
        pass
    try:
        _PARSERS[str(parameter.name)](text)
    except Refused as refused:
        raise click.BadParameter(f"{refused.message} ({refused.code})") from None
    return text


@click.command(
    epilog="""\b
Examples:
  fairwarning scale workers 5
  fairwarning scale workers 4 --address 10.0.1.13 --why "the queue is long"
  fairwarning scale workers 2 --yes --wait
"""
)
@_set_argument
@click.argument("capacity", type=click.IntRange(0, 1_000))
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="IP",
    help="Address of a new instance (repeatable; give it once for each instance).",
)
@wait_option
@yes_option
@why_option
@connected
def scale(
    session: Session,
    set: str,
    capacity: int,
    addresses: tuple[str, ...],
    wait: bool,
    yes: bool,
    why: str | None,
) -> None:
    """Resize the scale set SET to CAPACITY instances.

    If SET gets smaller, the instances with the highest numbers, or the last names, are deleted. If
    they have a terminate notice, an event announces this first; otherwise they are deleted at once.
    On a terminal, the command asks before it deletes instances.
    """
    body = {"capacity": capacity, "addresses": list(addresses)}
    if sys.stdin.isatty() and not yes:
        plan = session.api.post("scopes", set, "scale", "plan", body=body, repeatable=False)
        if plan["removes"]:
            confirm(f"Delete {several(plan['removes'], 20)} of {plan['name']}?", yes=False)
    _conclude(session, session.api.post("scopes", set, "scale", body=body, why=why), wait=wait)


@click.command(
    epilog="""\b
Examples:
  fairwarning replace workers_1 --yes
  fairwarning replace workers_1 --address 10.0.1.14 --wait --why "its disk is broken"
"""
)
@click.argument("instance", shell_complete=complete_instance)
@click.option("--address", metavar="IP", help="Address of the new instance.")
@wait_option
@yes_option
@why_option
@connected
def replace(
    session: Session, instance: str, address: str | None, wait: bool, yes: bool, why: str | None
) -> None:
    """Replace INSTANCE, which belongs to a scale set, by a new instance.

    The new instance is created at once. The old one is deleted after the terminate notice of its
    model. On a terminal, the command asks for confirmation.
    """
    if sys.stdin.isatty() and not yes:
        confirm(f"Delete {instance} and put a new instance in its place?", yes=False)
    body = {"addresses": [] if address is None else [address]}
    done = session.api.post("instances", instance, "replace", body=body, why=why)
    _conclude(session, done, wait=wait)


def _conclude(session: Session, resized: Json, *, wait: bool) -> None:
    if wait:
        resized["events"] = [wait_for(session, event) for event in resized["events"]]
    session.answer(resized, lambda now: resized_page(resized, now))
    if wait:
        refuse_unfinished(resized["events"])


@click.command(
    epilog="""\b
Examples:
  fairwarning model workers --terminate-notice 10m
  fairwarning model workers --terminate-notice none --reimage-notice 15m
"""
)
@_set_argument
@click.option(
    "--terminate-notice",
    callback=_notice,
    metavar="D",
    help="How long before a delete the instances are warned. It is from 5m to 15m, or none.",
)
@click.option(
    "--reimage-notice",
    callback=_notice,
    metavar="D",
    help="How long before a reimage the instances are warned. It is 15m, or none.",
)
@why_option
@connected
def model(session: Session, set: str, why: str | None, **notices: str | None) -> None:
    """Set how much notice instances of the scale set SET get before a delete or a reimage.

    New instances use the change at once. Existing ones use it after `fairwarning upgrade`.
    """
    names = {"terminate_notice": "terminateNotice", "reimage_notice": "reimageNotice"}
    said = {names[name]: text for name, text in notices.items() if text is not None}
    if not said:
        raise click.UsageError("say what to change: --terminate-notice or --reimage-notice")
    body = {name: None if text == _NONE else text for name, text in said.items()}
    done = session.api.post("scopes", set, "model", body=body, why=why)
    session.answer(done, lambda _: model_page(done["scopes"]))


@click.command(
    epilog="""\b
Examples:
  fairwarning upgrade workers
  fairwarning upgrade workers workers_0 workers_2
"""
)
@_set_argument
@click.argument("instances", nargs=-1, metavar="[INSTANCE]...", shell_complete=complete_instance)
@why_option
@connected
def upgrade(session: Session, set: str, instances: tuple[str, ...], why: str | None) -> None:
    """Give each INSTANCE of the scale set SET, or all of them, the latest model of the set."""
    body = {"instances": list(instances)} if instances else {}
    done = session.api.post("scopes", set, "upgrade", body=body, why=why)
    session.answer(done, lambda _: upgraded_page(done["upgraded"]))


@click.command(
    epilog="""\b
Examples:
  fairwarning policy workers --approve-reboot --approve-redeploy
  fairwarning policy availability-set/web --no-approve-reboot
"""
)
@click.argument("scope", shell_complete=complete_scope)
@click.option(
    "--approve-reboot/--no-approve-reboot",
    "approveUserReboot",
    default=None,
    help="Whether restarts that the owner asks for start without an approval.",
)
@click.option(
    "--approve-redeploy/--no-approve-redeploy",
    "approveUserRedeploy",
    default=None,
    help="Whether redeploys that the owner asks for start without an approval.",
)
@click.option(
    "--approve-all-down/--no-approve-all-down",
    "approveAllInstancesDown",
    default=None,
    help="Whether events start without an approval while all instances of the scope are down.",
)
@why_option
@connected
def policy(session: Session, scope: str, why: str | None, **agreed: bool | None) -> None:
    """Set which events of SCOPE start without waiting for an approval."""
    body = {name: is_so for name, is_so in agreed.items() if is_so is not None}
    if not body:
        raise click.UsageError("say what to change, such as --approve-reboot")
    done = session.api.post("scopes", scope, "policy", body=body, why=why)
    session.answer(done, lambda _: policy_page(done["scopes"]))
