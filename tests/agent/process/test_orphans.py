"""kill -9 of the real agent while its command lives on: the next one ends that first."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairwarning.agent.leftover_processes import SUFFIX
from fairwarning.agent.state_file import read_state
from fairwarning.testing import Server
from tests.agent.test_program import Process
from tests.support.patience import HANG_S

CONFIG = """\
endpoint = "{url}"
name = "web-0"
state = "{folder}/state.json"
listen = ""
[[rule]]
name = "all"
[[rule.scheduled]]
run = "echo $$ > {folder}/begun; read _ < {folder}/gate; touch {folder}/drained"
undo = "rm -f {folder}/drained"
"""


class Slow:
    """An agent whose only action says who it is and then waits at a gate, before it drains."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "agent.toml"
        self.path.write_text(CONFIG.format(url=url, folder=folder))
        os.mkfifo(folder / "begun")
        os.mkfifo(folder / "gate")
        self._commands: list[int] = []
        self._agents: list[Process] = []

    def start(self) -> Process:
        agent = Process("--config", str(self.path))
        self._agents.append(agent)
        return agent

    def begun(self) -> int:
        """The command's process, once it runs."""
        self._commands.append(int((self.folder / "begun").read_text()))
        return self._commands[-1]

    def is_noted(self, command: int) -> bool:
        noted = self.folder / f"state.json{SUFFIX}"
        return noted.exists() and f"{command} " in noted.read_text()

    def end_state(self) -> dict[str, object]:
        return {
            "drained": (self.folder / "drained").exists(),
            "waits at the gate": self._is_awaited(),
            "records": dict(read_state(self.folder / "state.json").records),
            "files": {each.name for each in self.folder.iterdir()},
        }

    def _is_awaited(self) -> bool:
        try:
            os.close(os.open(self.folder / "gate", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def close(self) -> None:
        for each in self._agents:
            if each.process.poll() is None:
                each.end(signal.SIGKILL)
        for command in self._commands:
            with suppress(ProcessLookupError):
                os.killpg(command, signal.SIGKILL)


@pytest.fixture
def slow(fairwarning: Server, tmp_path: Path) -> Iterator[Slow]:
    made = Slow(fairwarning.vm("web-0").url, tmp_path)
    yield made
    made.close()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_command_that_outlives_its_agent_does_not_drain_after_the_undo(
    fairwarning: Server, slow: Slow, is_killed: bool
) -> None:
    agent = slow.start()
    agent.until("watching")
    event = fairwarning.schedule("Reboot", "web-0")
    command = slow.begun()
    fairwarning.wait_until(lambda: slow.is_noted(command))
    if is_killed:
        agent.end(signal.SIGKILL)
        assert is_alive(command), "or there is nothing to be seen here"
    fairwarning.cancel(event)
    if is_killed:
        agent = slow.start()
    agent.until("all is done and undone")
    assert agent.end() == 0
    assert slow.end_state() == {
        "drained": False,
        "waits at the gate": False,
        "records": {},
        "files": {"agent.toml", "begun", "gate", "state.json", "state.json.lock", "state.json.run"},
    }
    is_told = any(f"its command goes on (process {command})" in line for line in agent.said)
    assert is_told == is_killed


def test_a_command_that_outlives_its_agent_does_not_run_beside_its_second_attempt(
    fairwarning: Server, slow: Slow
) -> None:
    first = slow.start()
    first.until("watching")
    fairwarning.schedule("Reboot", "web-0")
    command = slow.begun()
    fairwarning.wait_until(lambda: slow.is_noted(command))
    first.end(signal.SIGKILL)
    second = slow.start()
    again = slow.begun()
    assert (is_alive(command), again != command) == (False, True)
    (slow.folder / "gate").write_text("\n")
    second.until("is started")
    assert second.end() == 0
    assert (slow.folder / "drained").exists()
    assert [each.by for each in fairwarning.approvals()] == ["instance:web-0"]


def test_a_rehearsal_too_ends_first_what_was_left_behind(fairwarning: Server, slow: Slow) -> None:
    first = slow.start()
    first.until("watching")
    event = fairwarning.schedule("Reboot", "web-0")
    command = slow.begun()
    fairwarning.wait_until(lambda: slow.is_noted(command))
    first.end(signal.SIGKILL)
    raw = json.loads((slow.folder / "state.json").read_text())
    del raw["memory"]["records"][event.id]
    (slow.folder / "state.json").write_text(json.dumps(raw))
    rehearsal = Process("test", "reboot", "--config", str(slow.path), "--yes")
    again = slow.begun()
    assert (is_alive(command), again != command) == (False, True)
    (slow.folder / "gate").write_text("\n")
    assert rehearsal.process.wait(HANG_S) == 0
    assert rehearsal.process.stderr is not None
    rehearsal.process.stderr.close()
