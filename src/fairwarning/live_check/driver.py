"""The program that the `command` driver of the live check runs. An impact only takes time.

It follows docs/drivers.md as a real program should. All nodes share a file for each key, where it
keeps the state of the impact. So `find` gives every node the same answer, and an attempt that is
lower than an earlier one is refused. It writes every order to its log first, so the log also shows
orders that are then refused.

It imports nothing of the package: `python -I -S driver.py FOLDER SECONDS LONG FAILURES do|find`. An
impact takes about SECONDS, and one in a hundred takes LONG seconds. One in FAILURES attempts fails.
With 0, none fails.
"""

import fcntl
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_JOIN_PAUSE_S = 0.02  # Short compared with an impact of 0.4 s.
_LONG_ONE_IN = 100  # Rare, because such an impact lasts longer than a lease.
_END_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class Driver:
    def __init__(self, folder: str, order: dict[str, Any]) -> None:
        self._log = os.path.join(folder, "driver.jsonl")
        self._key = str(order["key"])
        self._memory = os.path.join(folder, "keys", self._key)
        self._attempt = int(order["attempt"])
        self._order = order

    def find(self) -> str:
        asked_at = _now()
        with self._remembered() as known:
            # The attempt counts as seen, so a lower attempt is refused from now on.
            known["attempt"] = max(known["attempt"], self._attempt)
            found = _state(known)
        self._write("find", asked_at, outcome=found)
        return found

    def do(self, seconds: float, long_s: float, failures: int) -> int:
        """Carries out the order, refuses it, or waits if it is under way. Returns the exit code."""
        order = self._order
        self._write(
            "do",
            _now(),
            node=order.get("node", ""),
            scope=order["scope"],
            type=order["type"],
            operation=order["operation"],
            instances=[
                {"name": each["name"], "handle": each["handle"], "domain": each["updateDomain"]}
                for each in order["instances"]
            ],
        )
        with self._remembered() as known:
            seen, found, at = known["attempt"], _state(known), _now()
            if self._attempt >= seen:
                known["attempt"] = self._attempt
                if found not in ("done", "running"):
                    known.update(state="running", pid=os.getpid(), born=_born(os.getpid()))
        # The state is stored before the log is written, in case this program dies in between.
        if self._attempt < seen:
            self._write("refuse", at, outcome=f"attempt {seen} was seen")
            print(f"attempt {seen} was seen", file=sys.stderr)
            return 1
        if found in ("done", "running"):
            self._write("join", at, outcome=found)
            return self._join()
        self._write("begin", at)
        return self._act(seconds, long_s, failures)

    def _act(self, seconds: float, long_s: float, failures: int) -> int:
        chance = zlib.crc32(f"{self._key} {self._attempt}".encode())
        lasts_s = seconds * (0.5 + chance % 101 / 100)
        if chance // 10_007 % _LONG_ONE_IN == 0:
            lasts_s = long_s
        if signal.sigtimedwait(_END_SIGNALS, lasts_s) is not None:
            outcome = "interrupted"
        else:
            outcome = "failed" if failures and chance // 101 % failures == 0 else "done"
        at = _now()
        with self._remembered() as known:
            known["state"] = "done" if outcome == "done" else "failed"
        self._write("end", at, outcome=outcome)
        if outcome != "done":
            print(f"the impact {outcome}", file=sys.stderr)
        return int(outcome != "done")

    def _join(self) -> int:
        while True:
            with self._remembered() as known:
                found = _state(known)
            if found != "running":
                return int(found != "done")
            time.sleep(_JOIN_PAUSE_S)

    @contextmanager
    def _remembered(self) -> Iterator[dict[str, Any]]:
        """Lends the stored state of the key under a lock, and stores the changes at the end."""
        with open(self._memory, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            known = json.loads(text) if text else {"attempt": 0, "state": "unknown"}
            yield known
            file.truncate(0)
            file.write(json.dumps(known).encode())
            file.flush()

    def _write(self, what: str, at: list[float], **more: Any) -> None:
        line = {"record": "driver", "what": what, "key": self._key, "attempt": self._attempt}
        line.update(pid=os.getpid(), at=at, **more)
        log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(log, json.dumps(line).encode() + b"\n")
            os.fsync(log)
        finally:
            os.close(log)


def _state(known: dict[str, Any]) -> str:
    if known["state"] == "running" and _born(known["pid"]) != known["born"]:
        return "failed"
    return str(known["state"])


def _born(pid: int) -> str:
    """Returns when the process started. This tells it from a later process with the same id."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""


def _now() -> list[float]:
    return [round(time.monotonic(), 6), round(time.time() * 1000, 3)]


def main() -> None:
    # A signal interrupts only the impact itself, and never a write to a file.
    signal.pthread_sigmask(signal.SIG_BLOCK, _END_SIGNALS)
    folder, seconds, long_s, failures, action = sys.argv[1:]
    driver = Driver(folder, json.load(sys.stdin))
    if action == "find":
        print(driver.find())
    else:
        sys.exit(driver.do(float(seconds), float(long_s), int(failures)))


if __name__ == "__main__":
    main()
