"""`fairwarning fault` makes the endpoint misbehave, so that handlers can be tested."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from fairwarning.cli.click_types import Number, duration
from fairwarning.cli.common_options import Session, connected, why_option
from fairwarning.cli.completion import complete_instance
from fairwarning.cli.lookup import FAULT, with_id
from fairwarning.cli.table_model import Cell, Column, Listing, line
from fairwarning.cli.tables.cells import soon, zone_note
from fairwarning.cli.times import human_duration, parse_duration_ms
from fairwarning.common.escape import counted, several
from fairwarning.core.faults import COUNT_MAX, STATUSES, FaultKind, Part

_KIND = click.Choice([each.value for each in FaultKind])
_PART = click.Choice([each.value for each in Part])


@click.group(
    epilog="""\b
Examples:
  fairwarning fault set status --status 500 --count 3
  fairwarning fault list
  fairwarning fault clear
"""
)
def fault() -> None:
    """Make the metadata endpoint send errors and wrong answers, in test fleets only."""


@fault.command(
    "set",
    epilog="""\b
Examples:
  fairwarning fault set empty --instance web-0
  fairwarning fault set status --status 503 --on approve --count 2
  fairwarning fault set slow --delay 2s --probability 0.1 --for 10m
""",
)
@click.argument("kind", type=_KIND, metavar="KIND")
@click.option(
    "--instance",
    "instances",
    multiple=True,
    metavar="N",
    shell_complete=complete_instance,
    help="Instance whose requests are affected (repeatable; default: all instances of test "
    "fleets).",
)
@click.option(
    "--on", type=_PART, default="poll", show_default=True, help="Which requests are affected."
)
@click.option(
    "--count",
    type=click.IntRange(1, COUNT_MAX),
    metavar="N",
    help="How many times the fault fires (default: until it is cleared).",
)
@click.option(
    "--probability",
    type=Number(0, 1, min_open=True),
    metavar="P",
    help="Probability that the fault fires at a request, above 0 and up to 1 (default: 1).",
)
@click.option(
    "--for",
    "for_",
    type=duration,
    metavar="D",
    help="How long the fault lasts by the server's clock (default: until it is cleared).",
)
@click.option(
    "--status",
    type=click.Choice([str(each) for each in STATUSES]),
    help="Status code that the kind `status` answers with (default: 503).",
)
@click.option(
    "--delay",
    type=duration,
    metavar="D",
    help="How long the kinds `slow` and `slow-body` delay a response (default: 5s).",
)
@why_option
@connected
def set_fault(session: Session, kind: str, why: str | None, **given: Any) -> None:
    """Set a fault of KIND on the endpoint.

    KIND is status, empty, reset, slow, slow-body, iso-dates, dotnet-dates, unknown-type,
    unknown-fields, incarnation-reset, stale, duplicate or fewer-resources. Without --count and
    --for, the fault stays until it is cleared.
    """
    body: dict[str, Any] = {"kind": kind, "instances": list(given.pop("instances"))}
    body |= {key.rstrip("_"): value for key, value in given.items() if value is not None}
    if "status" in body:
        body["status"] = int(body["status"])
    made = session.api.post("faults", body=body, why=why)
    session.answer(made, lambda now: [faults_table([made], now)])


@fault.command("list", epilog="Example: fairwarning fault list --json")
@connected
def list_faults(session: Session) -> None:
    """List the faults that are set."""
    found = session.api.get("faults")
    session.answer(found, lambda now: [faults_table(found["faults"], now)])


@fault.command(epilog="Example: fairwarning fault clear 4f2a9c01")
@click.argument("id", required=False)
@why_option
@connected
def clear(session: Session, id: str | None, why: str | None) -> None:
    """Clear the fault ID, or all faults if no ID is given."""
    if id is not None:
        api = session.api
        done = with_id(api, FAULT, id, lambda whole: api.delete("faults", whole, why=why))
        session.answer(done, lambda _: [line(f"Fault {id} is cleared.")])
        return
    done = session.api.delete("faults", why=why)
    session.answer(done, lambda _: [line(f"{counted(done['cleared'], 'fault')} cleared.")])


Json = dict[str, Any]
_COLUMNS = (
    Column("ID", whole=True),
    Column("KIND", whole=True),
    Column("ON"),
    Column("INSTANCES"),
    Column("HOW OFTEN", wraps=True),
    Column("UNTIL", whole=True),
    Column("STRUCK"),
)


def faults_table(faults: Sequence[Json], now: datetime) -> Listing:
    rows = tuple(
        (
            Cell(fault["id"], "bold"),
            Cell(_kind(fault), "red"),
            Cell(fault["on"]),
            Cell(several(fault["instances"]) or "all of test fleets"),
            Cell(_often(fault)),
            soon(fault["until"], now) if fault["until"] else Cell("cleared", "dim"),
            Cell(str(fault["hits"])),
        )
        for fault in faults
    )
    return Listing(
        columns=_COLUMNS,
        rows=rows,
        empty="No fault is set: the endpoint behaves.",
        note=zone_note(now) if any(fault["until"] for fault in faults) else "",
    )


def _kind(fault: Json) -> str:
    more = fault["status"] or _in_words(fault["delay"])
    return f"{fault['kind']} {more}" if more else str(fault["kind"])


def _in_words(delay: str | None) -> str:
    return human_duration(parse_duration_ms(delay)) if delay else ""


def _often(fault: Json) -> str:
    count, probability = fault["count"], fault["probability"]
    often = "always" if count is None else f"{count} times"
    return often if probability == 1 else f"{often}, with probability {probability:g}"
