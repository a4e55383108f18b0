"""The other half of `run_in_vms`: started in the new network, it builds the rig and plays."""

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
