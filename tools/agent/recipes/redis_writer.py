"""A client that writes to Redis all the time, and asks Sentinel where the master is."""

import socket
import threading
import time
from io import BufferedRWPair
from types import TracebackType
from typing import Self

from tests.support.patience import HANG_S
from tools.agent.recipes.vms import wait_until

KEY = "written"
_PAUSE_S = 0.005


class Refused(Exception):
    """Redis answered with an error."""


class Writer:
    """Appends numbers to a list during the block, each once, and remembers which were taken."""

    def __init__(self, sentinel: str) -> None:
        self._sentinel = sentinel
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write_all)
        self.acknowledged: list[int] = []
        self.masters: list[str] = []
        self.longest_s = 0.0
        """How long the slowest write took, from the first attempt to the acknowledgement."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def wait_for_more(self, count: int) -> None:
        enough = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= enough, f"{count} more writes")

    def _write_all(self) -> None:
        number, since_s = 0, time.monotonic()
        while not self._stopping.is_set():
            try:
                with _connected(self._sentinel, 26379) as sentinel:
                    found = call(sentinel, "sentinel", "get-master-addr-by-name", "mymaster")
                with _connected(found[0], int(found[1])) as master:
                    while not self._stopping.is_set():
                        # After an error the same number may be there already, which is no loss.
                        call(master, "rpush", KEY, str(number))
                        self._note(found[0], number, time.monotonic() - since_s)
                        time.sleep(_PAUSE_S)
                        number, since_s = number + 1, time.monotonic()
            except (OSError, Refused):
                time.sleep(_PAUSE_S)

    def _note(self, master: str, number: int, took_s: float) -> None:
        self.acknowledged.append(number)
        self.longest_s = max(self.longest_s, took_s)
        if self.masters[-1:] != [master]:
            self.masters.append(master)


def call(stream: BufferedRWPair, *words: str) -> list[str]:
    """Sends a command and returns the values of the answer."""
    parts = [f"${len(each.encode())}\r\n{each}\r\n" for each in words]
    stream.write(f"*{len(words)}\r\n{''.join(parts)}".encode())
    stream.flush()
    kind, rest = _line(stream)
    if kind == "-":
        raise Refused(rest)
    if kind == "*":
        # Each value is a length and the value itself.
        return [stream.read(int(_line(stream)[1]) + 2).decode().strip() for _ in range(int(rest))]
    return [rest]


def _line(stream: BufferedRWPair) -> tuple[str, str]:
    line = stream.readline().decode()
    if not line.endswith("\r\n"):
        raise ConnectionResetError("Redis closed the connection")
    return line[0], line[1:].strip()


def _connected(host: str, port: int) -> BufferedRWPair:
    with socket.create_connection((host, port), timeout=HANG_S) as connection:
        return connection.makefile("rwb")
