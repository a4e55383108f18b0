"""With json.conf each line of the agent in the journal is a JSON object, for programs."""

import json
from collections.abc import Iterator

from tools.systemd.stage import AGENT, Stage


def read_as_json(stage: Stage) -> Iterator[str]:
    """After the reboot, so what was undone stands there."""
    lines = stage.guest.log_of(AGENT, "_TRANSPORT=stdout")
    objects = [json.loads(line) for line in lines]
    assert all({"time", "level", "message"} <= each.keys() for each in objects), lines
    undone = [each for each in objects if each["message"].startswith("undone: ")]
    assert undone, lines
    assert undone[0]["event"], lines
    yield f"with json.conf all {len(objects)} lines of this boot in the journal are JSON objects"
