"""Observes a handler: its requests, the lines of its log, and whether it still runs."""

import time
from collections.abc import Callable
from pathlib import Path

from fairwarning.handler_check.handler import Handler
from fairwarning.metadata.requests import read_event_ids
from fairwarning.testing import Server

DRAIN = "drain"
UNDO = "undo"


class HandlerLog:
    """The file that FAIRWARNING_CHECK_LOG names, in which a handler reports what it does.

    A line is `drain EVENT-ID` or `undo EVENT-ID`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_written(self) -> bool:
        """Whether the handler has written any line."""
        return bool(self._lines())

    def count(self, word: str, event_id: str) -> int:
        return self._lines().count((word, event_id.upper()))

    def _lines(self) -> list[tuple[str, str]]:
        if not self._path.exists():
            return []
        parts = (line.split() for line in self._path.read_text(errors="replace").splitlines())
        return [(part[0].lower(), part[1].upper()) for part in parts if len(part) >= 2]


class Observations:
    """Tells what a handler has done so far, and waits for what it should do."""

    def __init__(self, server: Server, vm: str, log: HandlerLog, patience_s: float) -> None:
        self._server = server
        self._vm = vm
        self.patience_s = patience_s
        self.log = log
        self.handler: Handler | None = None

    @property
    def is_alive(self) -> bool:
        return self.handler is not None and self.handler.is_alive

    @property
    def ending(self) -> str:
        return "never ran" if self.handler is None else self.handler.ending

    def polls(self) -> int:
        return len(self._server.requests(self._vm, kind="events"))

    def approvals(self, event_id: str) -> int:
        """Return how often the handler approved this event, including refused approvals."""
        asked = self._server.requests(self._vm, kind="approve")
        return sum(event_id in (read_event_ids(each.body) or ()) for each in asked)

    def versions(self) -> str:
        """Return the api-versions that the handler used, as text."""
        asked = [*self._server.requests(self._vm, kind="events")]
        asked += self._server.requests(self._vm, kind="approve")
        return ", ".join(sorted({each.version for each in asked})) or "none"

    def has_acted_on(self, event_id: str) -> bool:
        return bool(self.approvals(event_id) or self.log.count(DRAIN, event_id))

    def wait(self, condition: Callable[[], object], *, within_s: float | None = None) -> bool:
        """Return whether `condition` becomes true before the handler ends and time runs out.

        The time is `within_s`, or the patience if it is None.
        """
        self._wait_until(lambda: condition() or not self.is_alive, within_s)
        return bool(condition())

    def wait_polls(self, more: int) -> bool:
        """Return whether that many more polls come in time.

        The handler has then read all responses but the last.
        """
        wanted = self.polls() + more
        return self.wait(lambda: self.polls() >= wanted, within_s=self.patience_s + more)

    def _wait_until(self, condition: Callable[[], object], within_s: float | None = None) -> None:
        limit = self.patience_s if within_s is None else within_s
        try:
            self._server.wait_until(condition, timeout=limit)
        except AssertionError:
            return

    def time_polls(self, polls: int) -> float:
        """Return how many seconds the next `polls` polls take. It waits a limited time."""
        began = time.monotonic()
        self.wait_polls(polls)
        return time.monotonic() - began
