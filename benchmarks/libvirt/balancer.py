"""A load balancer as small as it can be: it looks at each guest once a second, and sends requests
to those that were well. A request that fails is not repeated, so each loss is counted.
"""

import http.client
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from tools.libvirt_guests.host import Host

LOOK_EVERY_S = 1.0
REQUEST_S = 5.0
CLIENTS = 4
PAUSE_S = 0.2
"""How long a client pauses after each request."""


class Balancer:
    def __init__(self, host: Host, addresses: Sequence[str]) -> None:
        self.sent = 0
        self.failed = 0
        self._host = host
        self._well = dict.fromkeys(addresses, False)
        self._turn = 0
        self._lock = threading.Lock()
        self._begins = threading.Event()
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for address in self._well:
            self._start(partial(self._look, address))
        for _ in range(CLIENTS):
            self._start(self._send)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def begin(self) -> None:
        self._begins.set()

    def end(self) -> None:
        self._ends.set()
        self._begins.set()
        for thread in self._threads:
            thread.join()

    def used(self) -> int:
        """Returns how many guests were well when they were last looked at."""
        return sum(self._well.values())

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=lambda: self._host.call(work), daemon=True)
        thread.start()
        self._threads.append(thread)

    def _look(self, address: str) -> None:
        while not self._ends.is_set():
            self._well[address] = _answers(address, "/health")
            self._ends.wait(LOOK_EVERY_S)

    def _send(self) -> None:
        self._begins.wait()
        while not self._ends.wait(PAUSE_S):
            with self._lock:
                well = [address for address, is_well in self._well.items() if is_well]
                self._turn += 1
                address = well[self._turn % len(well)] if well else ""
            is_answered = bool(address) and _answers(address, "/page")
            with self._lock:
                self.sent += 1
                self.failed += not is_answered


def _answers(address: str, path: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=REQUEST_S)
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200
    connection.close()
    return False
