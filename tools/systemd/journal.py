"""Checks that with json.conf each line of the agent in the journal is a JSON object."""

import json
from collections.abc import Iterator

from tools.systemd.context import AGENT, Context


def read_as_json(context: Context) -> Iterator[str]:
    """Reads the journal after the reboot, so that it has the undo."""
    lines = context.guest.log_of(AGENT, "_TRANSPORT=stdout")
    objects = [json.loads(line) for line in lines]
    assert all({"time", "level", "message"} <= each.keys() for each in objects), lines
    undone = [each for each in objects if each["message"].startswith("undone: ")]
    assert undone, lines
    assert undone[0]["event"], lines
    yield f"with json.conf all {len(objects)} lines of this boot in the journal are JSON objects"
