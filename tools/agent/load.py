"""Sends requests all the time, each on a connection of its own, and counts the results."""

import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tools.agent.balancer import BODY_BYTES, FRONT_PORT

WORKERS = 8
PAUSE_S = 0.02
PATIENCE_S = 10.0


@dataclass(slots=True)
class Counts:
    answered: int = 0
    slowest_s: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)


class Load:
    def __init__(self, host: str) -> None:
        self._address = (host, FRONT_PORT)
        self._is_over = threading.Event()
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._run) for _ in range(WORKERS)]
        self.counts = Counts()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Waits until this many more requests were answered."""
        with self._changed:
            wanted = self.counts.answered + more
            is_there = self._changed.wait_for(lambda: self.counts.answered >= wanted, timeout=30)
        assert is_there, f"the load gets no answers: {self.counts}"

    def _run(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            began = time.monotonic()
            problem = _ask(self._address)
            with self._changed:
                self.counts.slowest_s = max(self.counts.slowest_s, time.monotonic() - began)
                if problem:
                    self.counts.failures[problem] += 1
                else:
                    self.counts.answered += 1
                self._changed.notify_all()


def _ask(address: tuple[str, int]) -> str:
    """Sends a request and returns what went wrong; empty if nothing did."""
    received = bytearray()
    try:
        with socket.create_connection(address, timeout=PATIENCE_S) as asking:
            asking.sendall(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
            while data := asking.recv(65536):
                received += data
    except TimeoutError:
        return "without an answer in time"
    except OSError:
        return "cut off"
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        return f"answered {head[9:12].decode('latin-1') or 'nothing'}"
    return "" if len(body) == BODY_BYTES else "cut off"
