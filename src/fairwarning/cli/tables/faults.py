"""Faults: what goes wrong on purpose, for whom, and for how long."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fairwarning.cli.listing import Cell, Column, Listing
from fairwarning.cli.tables.cells import when
from fairwarning.cli.text import several

Json = dict[str, Any]

_COLUMNS = (
    Column("ID", whole=True),
    Column("KIND"),
    Column("ON"),
    Column("INSTANCES"),
    Column("HOW OFTEN"),
    Column("UNTIL"),
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
            when(fault["until"], now) if fault["until"] else Cell("cleared", "dim"),
            Cell(str(fault["hits"])),
        )
        for fault in faults
    )
    return Listing(columns=_COLUMNS, rows=rows, empty="No fault is set: the endpoint behaves.")


def _kind(fault: Json) -> str:
    more = fault["status"] or fault["delay"]
    return f"{fault['kind']} {more}" if more else str(fault["kind"])


def _often(fault: Json) -> str:
    count, probability = fault["count"], fault["probability"]
    often = "always" if count is None else f"{count} times"
    return often if probability == 1 else f"{often}, with probability {probability:g}"
