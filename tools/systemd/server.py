"""Runs our server, and the service of its webhook driver, where orders wait for the check."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.support.processes import serving
from tools.json_service import driver_service
from tools.systemd.json_lines import wait_until

VM = "vm"
_FLEET = """
test = true
[[vm]]
name = "{vm}"
addresses = ["127.0.0.1"]
driver = {{ type = "webhook", url = "{driver}" }}
"""


class Order:
    """An impact that the server ordered. It is done when the block ends."""

    def __init__(self, type: str, duration_s: float) -> None:
        self.type = type
        self.duration_s = duration_s
        self.is_done = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.is_done = True


class Driver:
    def __init__(self) -> None:
        self._orders: Queue[Order] = Queue()
        self._keys: dict[str, Order] = {}

    def obey(self, wanted: Mapping[str, Any]) -> str:
        """Answers the webhook; the order waits in a queue until `next` takes it."""
        key = wanted["key"]
        if wanted["action"] == "do" and key not in self._keys:
            self._keys[key] = Order(wanted["type"], wanted["durationSeconds"])
            self._orders.put(self._keys[key])
        if key not in self._keys:
            return "unknown"
        return "done" if self._keys[key].is_done else "running"

    def next(self, patience_s: float) -> Order:
        try:
            return self._orders.get(timeout=patience_s)
        except Empty:
            raise AssertionError(f"no impact began within {patience_s:.0f} s") from None


class Server:
    def __init__(self, control: str, driver: Driver) -> None:
        self._api = httpx.Client(base_url=f"{control}/api/v1", trust_env=False, timeout=30)
        self.driver = driver

    def schedule(self, type: str, **more: str) -> str:
        """Schedules an event and returns its id."""
        body = {"type": type, "targets": [VM], **more}
        id: str = self._api.post("/events", json=body).raise_for_status().json()["id"]
        return id

    def event(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._api.get(f"/events/{id}").raise_for_status().json()
        return found

    def cancel(self, id: str) -> None:
        self._api.post(f"/events/{id}/cancel", json={}).raise_for_status()

    def wait_until_over(self, id: str) -> None:
        wait_until("the event is over", lambda: self.event(id)["ended"] is not None, 30)
        assert (found := self.event(id))["phase"] == "completed", found


@contextmanager
def vm_server(folder: Path, address: Path) -> Iterator[Server]:
    """Runs a server of one VM, and writes where its metadata endpoint is to `address`."""
    driver = Driver()
    fleet = folder / "fleet.toml"
    with driver_service(driver.obey) as url:
        fleet.write_text(_FLEET.format(vm=VM, driver=url))
        with serving("--fleet", str(fleet), log=folder / "server.log") as ready:
            address.write_text(urlsplit(ready.metadata).netloc)
            yield Server(ready.control, driver)
