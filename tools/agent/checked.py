"""Writes a config for this run and becomes the agent, as `fairwarning check` starts it."""

import os
import sys
from pathlib import Path

_CONFIG = """
state = "{state}/agent.json"
listen = ""
[[rule]]
name = "all"
  [[rule.scheduled]]
  run = 'echo "drain $FAIRWARNING_EVENT_ID" >> "$FAIRWARNING_CHECK_LOG"'
  undo = 'echo "undo $FAIRWARNING_EVENT_ID" >> "$FAIRWARNING_CHECK_LOG"'
"""


def main() -> None:
    state = Path(os.environ["FAIRWARNING_CHECK_STATE"])
    config = state / "agent.toml"
    config.write_text(_CONFIG.format(state=state))
    agent = [sys.executable, "-m", "fairwarning", "agent", "--config", str(config)]
    os.execv(sys.executable, agent)  # noqa: S606


if __name__ == "__main__":
    main()
