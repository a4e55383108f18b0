"""Nodes of Fairwarning: one on each host, on one PostgreSQL. They can be killed and started."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes import clean_environment
from tools.libvirt_guests.guests import wait_until
from tools.libvirt_guests.host import ENDPOINT, Host

_LEASE = "5s"
_CONTROL = "127.0.0.1:8170"


class Node:
    """A server on a host, which answers the guests there."""

    def __init__(self, host: Host, store: str) -> None:
        self.host = host
        self._store = store
        self._process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> None:
        """Starts it and waits until it is ready."""
        argv = [
            *(sys.executable, "-m", "fairwarning", "serve", "--json", "--empty", "--no-azure"),
            *("--store", self._store, "--lease", _LEASE),
            *("--metadata", f"{ENDPOINT}:80", "--control", _CONTROL),
            *options,
        ]
        with self.log.open("a") as errors:
            self._process = subprocess.Popen(  # noqa: S603
                self.host.command(argv),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=clean_environment(),
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the node on {self.host.name} ended: {self.log.read_text()}"
        json.loads(line)

    @property
    def log(self) -> Path:
        return self.host.folder / "node.log"

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.communicate()
            self._process = None

    def ask(self, method: str, path: str, body: object = None) -> Any:
        def send() -> Any:
            with httpx.Client(base_url=f"http://{_CONTROL}/api/v1", trust_env=False) as client:
                answer = client.request(method, path, json=body, timeout=60)
                assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
                return answer.json()

        return self.host.call(send)

    def schedule(self, type: str, target: str, **more: object) -> str:
        """Announces an event and returns its id."""
        id: str = self.ask("POST", "/events", {"type": type, "targets": [target], **more})["id"]
        return id

    def wait_until_completed(self, id: str) -> dict[str, Any]:
        wait_until(f"the event {id} is over", lambda: self.ask("GET", f"/events/{id}")["ended"])
        event: dict[str, Any] = self.ask("GET", f"/events/{id}")
        assert event["phase"] == "completed", json.dumps(event["timeline"], indent=1)
        return event


def fleet_file(folder: Path, guests: Sequence[dict[str, Any]]) -> Path:
    """Writes a fleet of VMs, each with an address and its driver's settings."""
    lines = ["test = true"]
    for guest in guests:
        driver = ", ".join(f"{key} = {json.dumps(value)}" for key, value in guest["driver"].items())
        lines += [
            "[[vm]]",
            f"name = {json.dumps(guest['name'])}",
            f"addresses = [{json.dumps(guest['address'])}]",
            f"driver = {{ {driver} }}",
        ]
    path = folder / "fleet.toml"
    path.write_text("\n".join([*lines, ""]))
    return path
