"""A server at 169.254.169.254, and an agent on a VM with one of the recipes as it is shipped."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

from tests.support.namespaces import ENDPOINT
from tests.support.patience import HANG_S
from tests.support.processes import serving
from tools.agent.nodes import Agent, ask
from tools.agent.recipes.vms import DaemonVm
from tools.json_service import driver_service

RECIPES = Path(__file__).resolve().parents[3] / "examples" / "agent"
ALL_DONE = "all is done and undone"
_FLEET = """
test = true
notice = {{ Reboot = "1s" }}

[[availability_set]]
name = "set"
driver = {{ type = "webhook", url = "{driver}" }}
instances = [
{instances}
]
"""


class Fleet:
    """The operator's side: it schedules events, and sees what becomes of them."""

    def __init__(self) -> None:
        self.control = ""
        self.impact: Callable[[], None] = lambda: None
        """What a Reboot does; it takes as long as this does."""

    def schedule_reboot(self, name: str, notice: str = "10m") -> str:
        """Schedules a Reboot and returns its id. With the long notice nothing depends on how fast
        this machine is: the Reboot begins with the approval.
        """
        wanted = {"type": "Reboot", "targets": [name], "notice": notice}
        return str(ask(self._events, wanted)["id"])

    def approve(self, id: str) -> None:
        """Approves the event as an operator."""
        ask(f"{self._events}/{id}/approve", {})

    def event(self, id: str) -> Any:
        return ask(f"{self._events}/{id}")

    def approvals(self, id: str) -> list[str]:
        """Returns who approved the event."""
        return [each["by"] for each in self.event(id)["approvals"]]

    def obey(self, order: Mapping[str, Any]) -> str:
        if order["action"] == "do":
            self.impact()
        return "done"

    @property
    def _events(self) -> str:
        return f"{self.control}/api/v1/events"


@contextmanager
def fleet_of(vms: Mapping[str, DaemonVm], folder: Path) -> Iterator[Fleet]:
    """Runs a server where Azure's is, in whose fleet the VMs are."""
    fleet = Fleet()
    lines = [f'  {{ name = "{each}", addresses = ["{vms[each].address}"] }},' for each in vms]
    with driver_service(fleet.obey) as driver:
        file = folder / "fleet.toml"
        file.write_text(_FLEET.format(driver=driver, instances="\n".join(lines)))
        with serving("--fleet", str(file), metadata=f"{ENDPOINT}:80") as ready:
            fleet.control = ready.control
            yield fleet


def start_agent(vm: DaemonVm, *files: str) -> Agent:
    """Starts the agent on the VM with the files of a recipe, and waits until it watches.

    The files are where the recipe says, and as they are shipped.
    """
    for each in files:
        where = "/run/agent.toml" if each.endswith(".toml") else f"/usr/local/sbin/{each}"
        vm.write(where, (RECIPES / each).read_text(), 0o755)
    command = [sys.executable, "-m", "fairwarning", "agent", "--config", "/run/agent.toml"]
    agent = Agent(vm.start(command, stderr=PIPE), patience_s=HANG_S)
    agent.wait_until_it_says("watching")
    return agent
