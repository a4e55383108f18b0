"""What actions are given in these tests: one event, and a memory that is a dictionary."""

import json
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

from fairwarning.agent.actions.base import Context
from fairwarning.agent.config.model import Phase
from fairwarning.agent.templates import make_context
from fairwarning.client.model import Event, Instance, Status

EVENT = Event(
    id="E-1",
    type="Reboot",
    status=Status.SCHEDULED,
    resources=("Web-1", "web-2"),
    not_before=datetime(2026, 1, 31, 12, tzinfo=UTC),
    description='says "hi" & more',
    source="Platform",
    duration_s=9,
)


def context(
    kept: dict[str, str] | None = None,
    *,
    phase: Phase = Phase.SCHEDULED,
    time_left_s: float = 60,
) -> Context:
    """`kept` is the disk: what an action keeps is written into it, and read by the next."""
    disk = {} if kept is None else kept
    return make_context(
        EVENT,
        Instance(name="Web-1"),
        phase,
        time_left_s,
        purpose="do",
        keep=disk.__setitem__,
        kept=dict(disk) or None,
    )


def program(folder: Path, name: str, body: str) -> Path:
    """A program in Python; it can use `sys`, `json` and `here`, its folder."""
    path = folder / name
    start = f"#!{sys.executable}\nimport json, sys\nfrom pathlib import Path\n"
    path.write_text(f"{start}here = Path({json.dumps(str(folder))})\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
