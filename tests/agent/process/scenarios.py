"""The life of one event, and a real agent that is run at each stage of it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fairwarning.testing import Server
from tests.support.patience import HANG_S

ROOT = Path(__file__).parents[3]
VM = "web-0"
_RECORD = """#!/bin/sh
# Leaves or takes away a mark, and kills the agent first or afterwards if it was told so.
cd {folder}
if rm "doom/before $1" 2>/dev/null; then kill -9 $PPID; exit 1; fi
case $1 in
    un-*) rm -f "${{1#un-}}" ;;
    *) echo >> "$1" ;;
esac
if rm "doom/after $1" 2>/dev/null; then kill -9 $PPID; exit 1; fi
"""
_CONFIG = """
endpoint = "{url}"
name = "{vm}"
state = "{folder}/state.json"
listen = ""
[approve]
when = "{when}"
[[rule]]
name = "all"
  [[rule.scheduled]]
  run = ["{folder}/record", "drained"]
  undo = ["{folder}/record", "un-drained"]
  [[rule.scheduled]]
  run = ["{folder}/record", "silent"]
  undo = ["{folder}/record", "un-silent"]
  [[rule.started]]
  run = ["{folder}/record", "paused"]
  undo = ["{folder}/record", "un-paused"]
  [[rule.finished]]
  run = ["{folder}/record", "told-finished"]
  [[rule.cancelled]]
  run = ["{folder}/record", "told-cancelled"]
"""
DEEDS = (
    "drained", "silent", "paused", "un-paused", "un-silent", "un-drained", "told-finished",
    "told-cancelled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Doom:
    """When the agent is killed, once in every stage of the scenario."""

    when: str = "before"
    number: int = 0
    """Of the write of its state; 0: not there."""
    at_actions: bool = False
    """In the middle of every action, once each."""


class Agents:
    """Runs agents, one after the other; see `doomed`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.agent.process.doomed"],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, when: str, number: int, arguments: list[str]) -> int:
        """Its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"when": when, "number": number, "arguments": arguments}
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=HANG_S)


class Play:
    def __init__(
        self, server: Server, agents: Agents, folder: Path, doom: Doom, *, approves: bool
    ) -> None:
        self._agents = agents
        self._server = server
        self._folder = folder
        self._doom = doom
        self.killed = 0
        (folder / "doom").mkdir(parents=True)
        record = folder / "record"
        record.write_text(_RECORD.format(folder=folder))
        record.chmod(0o755)
        for state in DEEDS if doom.at_actions else ():
            (folder / "doom" / f"{doom.when} {state}").touch()
        config = _CONFIG.format(
            url=server.vm(VM).url, vm=VM, folder=folder, when="success" if approves else "never"
        )
        (folder / "agent.toml").write_text(config)

    def act(self) -> None:
        """Runs the agent until all that is due is done; if it was killed, another time."""
        code = self._run(self._doom.number)
        while code == -signal.SIGKILL:
            self.killed += 1
            code = self._run(0)
        assert code == 0, f"the agent ended with code {code}"

    def marks(self) -> set[str]:
        return {each.name for each in self._folder.iterdir() if each.name in DEEDS}

    def _run(self, number: int) -> int:
        config = str(self._folder / "agent.toml")
        arguments = ["--config", config, "--once", "--log-level", "error"]
        return self._agents.run(self._doom.when, number, arguments)


def finished(server: Server, play: Play) -> dict[str, object]:
    """Announced, approved, started, over."""
    server.vm(VM).document()
    event = server.schedule("Reboot", VM)
    play.act()
    assert {"drained", "silent"} <= play.marks(), "approved without what has to be done first"
    assert server.event(event).phase == "started"
    play.act()
    server.advance(minutes=5)
    play.act()
    return {
        "marks": play.marks(),
        "phase": server.event(event).phase,
        "approved by": [each.by for each in server.approvals()],
    }


def cancelled(server: Server, play: Play) -> dict[str, object]:
    """Announced, and taken back."""
    server.vm(VM).document()
    event = server.schedule("Reboot", VM)
    play.act()
    server.cancel(event)
    play.act()
    return {"marks": play.marks(), "phase": server.event(event).phase}


SCENARIOS: dict[str, Callable[[Server, Play], dict[str, object]]] = {
    "finished": finished,
    "cancelled": cancelled,
}
