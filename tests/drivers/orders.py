"""Orders for the drivers that reach outside, and programs for them to run."""

import sys
from collections.abc import Mapping
from pathlib import Path

from fairwarning.core.instants import SECOND_MS, later
from fairwarning.core.model import EventType, Instance, NodeId, OperationKind, ScopeId
from fairwarning.engine.protocols import Alarm, LeaseLost, Order
from tests.core.builders import E1, T0, names


def order(
    settings: Mapping[str, str], *, attempt: int = 1, operation: OperationKind | None = None
) -> Order:
    web0, web1 = names("web-0", "web-1")
    return Order(
        key=E1,
        attempt=attempt,
        node=NodeId("n1"),
        lease_until_ms=later(T0, 30 * SECOND_MS),
        may_be_under_way=attempt > 1,
        type=EventType.REBOOT,
        operation=operation,
        scope_id=ScopeId("s/g/availability-set/web"),
        instances=(Instance(name=web0, handle="vm-17", tags={"a": "b"}), Instance(name=web1)),
        duration_s=30,
        started_ms=T0,
        settings=settings,
    )


class HeldLease:
    """One that holds until the test ends it."""

    is_held = True

    async def confirm(self, alarm: Alarm) -> None:
        if not self.is_held:
            raise LeaseLost("the test ended it")


def program(folder: Path, text: str) -> dict[str, str]:
    """The settings of a driver that runs this Python text; `notes` is a file beside it."""
    path = folder / "a program.py"
    path.write_text(
        "import json, os, signal, subprocess, sys, time\n"
        "from pathlib import Path\n"
        "action = sys.argv[-1]\n"
        "notes = Path(__file__).with_name('notes')\n"
        f"{text}"
    )
    return {"run": f'{sys.executable} -S "{path}"'}
