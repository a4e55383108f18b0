"""What a handler was seen to do: its requests, its diary, and whether it lives."""

import time
from collections.abc import Callable
from pathlib import Path

from fairwarning.handler_check.handler import Handler
from fairwarning.metadata.requests import read_event_ids
from fairwarning.testing import Server


class Diary:
    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_kept(self) -> bool:
        """Whether the handler has written anything into it."""
        return bool(self._lines())

    def count(self, word: str, event_id: str) -> int:
        return self._lines().count((word, event_id.upper()))

    def drained(self) -> list[str]:
        """Ids, each once, in order."""
        return [*dict.fromkeys(id for word, id in self._lines() if word == DRAIN)]

    def _lines(self) -> list[tuple[str, str]]:
        if not self._path.exists():
            return []
        parts = (line.split() for line in self._path.read_text(errors="replace").splitlines())
        return [(part[0].lower(), part[1].upper()) for part in parts if len(part) >= 2]


class Seen:
    def __init__(self, server: Server, vm: str, diary: Diary, patience_s: float) -> None:
        self._server = server
        self._vm = vm
        self.patience_s = patience_s
        self.diary = diary
        self.handler: Handler | None = None

    @property
    def is_alive(self) -> bool:
        return self.handler is not None and self.handler.is_alive

    @property
    def ending(self) -> str:
        return "never ran" if self.handler is None else self.handler.ended

    def polls(self) -> int:
        return len(self._server.requests(self._vm, kind="events"))

    def approvals(self, event_id: str) -> int:
        """How often it asked for this event to start, whatever the answer was."""
        asked = self._server.requests(self._vm, kind="approve")
        return sum(event_id in (read_event_ids(each.body) or ()) for each in asked)

    def versions(self) -> str:
        """The api-versions it used, for people."""
        asked = [*self._server.requests(self._vm, kind="events")]
        asked += self._server.requests(self._vm, kind="approve")
        return ", ".join(sorted({each.version for each in asked})) or "none"

    def has_touched(self, event_id: str) -> bool:
        return bool(self.approvals(event_id) or self.diary.count(DRAIN, event_id))

    def wait(self, condition: Callable[[], object], *, within_s: float | None = None) -> bool:
        """False if it does not become so in time, or the handler ends first."""
        self.within(lambda: condition() or not self.is_alive, within_s)
        return bool(condition())

    def wait_polls(self, more: int) -> bool:
        """So many more polls, by which what was answered to all but the last has been read."""
        wanted = self.polls() + more
        return self.wait(lambda: self.polls() >= wanted, within_s=self.patience_s + more)

    def within(self, condition: Callable[[], object], within_s: float | None = None) -> None:
        limit = self.patience_s if within_s is None else within_s
        try:
            self._server.wait_until(condition, timeout=limit)
        except AssertionError:
            return

    def pace(self, polls: int) -> float:
        """How many seconds so many polls take it; patience if it does not ask that often."""
        began = time.monotonic()
        self.wait_polls(polls)
        return time.monotonic() - began


# What a handler says about itself: lines in the file that FAIRWARNING_CHECK_LOG names.
DRAIN = "drain"
UNDO = "undo"
