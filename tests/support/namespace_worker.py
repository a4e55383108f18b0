"""Runs inside the new network that `run_in_vms` makes: it builds the rig and plays the story."""

import importlib
import json
import sys
from pathlib import Path

from tests.support.vms import Rig


def main() -> None:
    order = json.loads(sys.argv[1])
    module, _, name = order["story"].partition(":")
    story = getattr(importlib.import_module(module), name)
    with Rig(order["vms"], order["endpoints"]) as rig:
        result = story(rig, **order["arguments"])
    Path(order["result"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
