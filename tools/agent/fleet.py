"""The server of the rolling reboot, and its driver's other end, which reboots VMs."""

import json
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import DEVNULL, PIPE, run
from types import TracebackType
from typing import Any, Self

from tests.support.namespaces import ENDPOINT
from tests.support.vms import Rig, clean_environment
from tools.agent.balancer import VMS, WEB
from tools.agent.machine import Machine

NOTICE = "6s"
PAUSE = "4s"
"""Between two VMs: HAProxy needs two good answers to believe in one that came back."""
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
    """The web service that the server's webhook driver asks."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._machines = machines
        self._keys: set[str] = set()
        self.done: list[str] = []
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def obey(self, order: Mapping[str, Any]) -> str:
        key = order["key"]
        if order["action"] == "do" and key not in self._keys:
            self._keys.add(key)
            for instance in order["instances"]:
                self._machines[instance["name"]].reboot()
                self.done.append(instance["name"])
        return "done" if key in self._keys else "unknown"


def _handler(reboots: Reboots) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps({"state": reboots.obey(order)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


class Fleet:
    def __init__(self, control: str) -> None:
        self._control = control

    def activate(self, rig: Rig) -> None:
        """Events are on once a VM has asked, as an owner who looks now and then would."""
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
def serving(rig: Rig, folder: Path, driver: str) -> Iterator[Fleet]:
    file = folder / "fleet.toml"
    instances = [f'  {{ name = "{name}", addresses = ["{VMS[name]}"] }},' for name in WEB]
    file.write_text(_FLEET.format(notice=NOTICE, driver=driver, instances="\n".join(instances)))
    command = [sys.executable, "-m", "fairwarning", "serve", "--store", "memory:", "--json",
               "--metadata", f"{ENDPOINT}:80", "--control", "127.0.0.1:0",
               "--fleet", str(file)]  # fmt: skip
    server = rig.start(command, stdout=PIPE, stderr=DEVNULL)
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line, f"the server ended with code {server.wait(10)} before it was ready"
    yield Fleet(json.loads(line)["control"])


def _get(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    query = "" if "/api/" in url else "?api-version=2020-07-01"
    request = urllib.request.Request(url + query, headers={"Metadata": "true"})  # noqa: S310
    with opener.open(request, timeout=10) as answer:
        return json.load(answer)
