"""Runs the server of the rolling reboot; the service of its webhook driver reboots VMs."""

import json
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import run
from typing import Any

from tests.support.namespaces import ENDPOINT
from tests.support.processes import clean_environment, serving
from tests.support.vms import Rig
from tools.agent.balancer import VMS, WEB
from tools.agent.machine import Machine

NOTICE = "6s"
PAUSE = "4s"
"""The pause between two VMs: HAProxy needs two good answers to use one again."""
_FLEET = """
test = true
notice = {{ Reboot = "{notice}" }}

[[availability_set]]
name = "web"
update_domains = 3
driver = {{ type = "webhook", url = "{driver}" }}
instances = [
{instances}
]
"""
_OVER = frozenset({"completed", "cancelled", "failed", "stopped"})


class Reboots:
    """The service of the webhook driver, which reboots VMs and records that."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._machines = machines
        self._keys: set[str] = set()
        self.done: list[str] = []

    def obey(self, order: Mapping[str, Any]) -> str:
        key = order["key"]
        if order["action"] == "do" and key not in self._keys:
            self._keys.add(key)
            for instance in order["instances"]:
                self._machines[instance["name"]].reboot()
                self.done.append(instance["name"])
        return "done" if key in self._keys else "unknown"


class Fleet:
    def __init__(self, control: str) -> None:
        self._control = control

    def activate(self, rig: Rig) -> None:
        """Polls once from each VM, because events are announced only after that."""
        for name in WEB:
            rig.vms[name].call(_get, f"http://{ENDPOINT}/metadata/scheduledevents")

    def roll_out(self, patience_s: float) -> None:
        command = [sys.executable, "-m", "fairwarning", "rollout", "start", "web", "--type",
                   "reboot", "--notice", NOTICE, "--pause", PAUSE, "--yes", "--json"]  # fmt: skip
        environment = {**clean_environment(), "FAIRWARNING_URL": self._control}
        started = run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603
        assert started.returncode == 0, started.stderr
        id = json.loads(started.stdout)["id"]
        ends_s = time.monotonic() + patience_s
        while (shown := _get(f"{self._control}/api/v1/rollouts/{id}"))["phase"] not in _OVER:
            assert time.monotonic() < ends_s, f"the rollout takes too long: {shown}"
            time.sleep(0.2)
        assert shown["phase"] == "completed", shown


@contextmanager
def web_server(folder: Path, driver: str) -> Iterator[Fleet]:
    file = folder / "fleet.toml"
    instances = [f'  {{ name = "{name}", addresses = ["{VMS[name]}"] }},' for name in WEB]
    file.write_text(_FLEET.format(notice=NOTICE, driver=driver, instances="\n".join(instances)))
    with serving("--fleet", str(file), metadata=f"{ENDPOINT}:80") as ready:
        yield Fleet(ready.control)


def _get(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    query = "" if "/api/" in url else "?api-version=2020-07-01"
    request = urllib.request.Request(url + query, headers={"Metadata": "true"})  # noqa: S310
    with opener.open(request, timeout=10) as answer:
        return json.load(answer)
