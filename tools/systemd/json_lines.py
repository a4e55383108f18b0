"""Exchanges lines of JSON over a socket with QEMU's monitor and its guest agent."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHUNK_BYTES = 65536


class Talk:
    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._received = b""

    def close(self) -> None:
        self._socket.close()

    def say(self, execute: str, arguments: dict[str, Any]) -> None:
        line = json.dumps({"execute": execute, "arguments": arguments})
        self._socket.sendall(line.encode() + b"\n")

    def hear(self, ends_s: float) -> dict[str, Any]:
        """Returns the next object. Raises TimeoutError at this time of the monotonic clock."""
        while b"\n" not in self._received:
            self._socket.settimeout(max(0.001, ends_s - time.monotonic()))
            data = self._socket.recv(_CHUNK_BYTES)
            if not data:
                raise AssertionError("QEMU has ended")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


class Monitor:
    """QEMU's monitor (QMP), which switches the machine and reports its events."""

    def __init__(self, path: Path) -> None:
        self._talk = Talk(path)
        self._events: list[dict[str, Any]] = []
        self.order("qmp_capabilities")

    def close(self) -> None:
        self._talk.close()

    def order(self, execute: str, patience_s: float = 30) -> None:
        self._talk.say(execute, {})
        ends_s = time.monotonic() + patience_s
        while "return" not in (heard := self._talk.hear(ends_s)):
            assert "error" not in heard, f"QEMU refuses {execute}: {heard}"
            if "event" in heard:
                self._events.append(heard)

    def wait_for(self, event: str, patience_s: float, **data: object) -> None:
        """Waits until this happens, or has happened since the last call. Raises TimeoutError."""
        ends_s = time.monotonic() + patience_s
        while not _is(heard := self._next(ends_s), event, data):
            assert heard.get("event") != "SHUTDOWN", f"the machine went off: {heard}"

    def _next(self, ends_s: float) -> dict[str, Any]:
        return self._events.pop(0) if self._events else self._talk.hear(ends_s)


def _is(heard: dict[str, Any], event: str, data: dict[str, object]) -> bool:
    return heard.get("event") == event and data.items() <= heard.get("data", {}).items()


def wait_until(
    what: str, is_so: Callable[[], bool], patience_s: float, every_s: float = 0.5
) -> None:
    ends_s = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < ends_s, f"not within {patience_s:.0f} s: {what}"
        time.sleep(every_s)
