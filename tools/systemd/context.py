"""What each part of the check uses: the machine, the server, and common questions."""

from dataclasses import dataclass

from tools.systemd.guest import Guest
from tools.systemd.json_lines import wait_until
from tools.systemd.machine import Machine
from tools.systemd.server import Server

AGENT = "fairwarning-agent"
WORKER = "worker"
DROP_INS = f"/etc/systemd/system/{AGENT}.service.d"
BROUGHT = "/srv/brought"
"""The folder in the machine with the files of the second disk."""
PATIENCE_S = 90.0
"""How long to wait for what takes an emulated machine a few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    machine: Machine
    server: Server

    @property
    def guest(self) -> Guest:
        return self.machine.guest

    def agent_pid(self) -> int:
        return int(self.guest.show(AGENT, "MainPID")["MainPID"])

    def agent_user(self) -> str:
        return self.guest.must(f"stat -c %U /proc/{self.agent_pid()}")

    def wait_for_log(self, words: str) -> str:
        """Waits for the first line of the agent in this boot with these words."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [line for line in self.guest.log_of(AGENT) if words in line]
            return bool(found)

        wait_until(f"the agent's log has {words!r}", is_there, PATIENCE_S)
        return found[0]

    def wait_for_worker(self, state: str) -> None:
        what = f"{WORKER} is {state}"
        wait_until(what, lambda: self.guest.state_of(WORKER) == state, PATIENCE_S)

    def wait_for_restart(self, old_pid: int) -> None:
        def is_another() -> bool:
            shown = self.guest.show(AGENT, "MainPID", "ActiveState")
            return shown["ActiveState"] == "active" and int(shown["MainPID"]) != old_pid

        wait_until("systemd has started the agent again", is_another, PATIENCE_S)

    def add_drop_in(self, name: str) -> None:
        """Installs a drop-in of `deploy/`, which counts from the next start of the agent."""
        self.guest.must(
            f"install -D -m 0644 {BROUGHT}/{name} -t {DROP_INS} && systemctl daemon-reload"
        )

    def restart(self) -> None:
        self.guest.must(f"systemctl restart {AGENT}")
