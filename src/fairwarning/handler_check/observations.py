"""Observes a handler: its requests, the lines of its log, and whether it still runs."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from fairwarning.handler_check.handler import Handler
from fairwarning.metadata.request_watchers import ObservedRequest
from fairwarning.metadata.requests import read_event_ids
from fairwarning.testing import Server

DRAIN = "drain"
UNDO = "undo"
SETTLED_POLLS = 3
"""After this many polls, a handler has read a document, acted on it, and polled again."""
_LATE_POLLS_PATIENCES = 6
"""So many times its patience the check waits for the polls of a handler that seems to hang."""
_SLICE_S = 0.5
"""The time between two looks at the delays of a busy machine."""
_SLICE_S_MIN = 0.05
"""Without it, the last slices on a busy machine would become ever shorter."""
_PROGRESS_MIN = 0.05
"""At least this share of the time counts, so that every wait ends."""
_EVIDENCE_MAX = 6  # A reader wants the first and the last requests, not all.


class HandlerLog:
    """The file that FAIRWARNING_CHECK_LOG names, in which a handler reports what it does.

    A line is `drain EVENT-ID` or `undo EVENT-ID`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_written(self) -> bool:
        """Whether the handler has written any line."""
        return bool(self._entries())

    def count(self, word: str, event_id: str) -> int:
        return self._entries().count((word, event_id.upper()))

    def lines(self, event_id: str) -> list[str]:
        """Return the lines about this event, each with its number."""
        return [
            f"line {number} of its log: {line.strip()}"
            for number, line in enumerate(self._text().splitlines(), 1)
            if event_id.upper() in line.upper()
        ]

    def _entries(self) -> list[tuple[str, str]]:
        parts = (line.split() for line in self._text().splitlines())
        return [(part[0].lower(), part[1].upper()) for part in parts if len(part) >= 2]

    def _text(self) -> str:
        return self._path.read_text(errors="replace") if self._path.exists() else ""


class Observations:
    """Tells what a handler has done so far, and waits for what it should do.

    Requests are compared by their order, not by the moment at which the check looks at them. So
    the same requests always give the same verdict.
    """

    def __init__(self, server: Server, vm: str, log: HandlerLog, patience_s: float) -> None:
        self._server = server
        self._vm = vm
        self._began_s = time.monotonic()
        self.patience_s = patience_s
        self.log = log
        self.handler: Handler | None = None

    @property
    def is_alive(self) -> bool:
        return self.handler is not None and self.handler.is_alive

    @property
    def ending(self) -> str:
        return "never ran" if self.handler is None else self.handler.ending

    def mark(self) -> int:
        """Return a mark for `since`: the number of requests so far."""
        return len(self._server.requests(self._vm))

    def polls(self, *, since: int = 0) -> int:
        return sum(each.kind == "events" for each in self._server.requests(self._vm)[since:])

    def approvals(self, event_id: str, *, since: int = 0) -> int:
        """Return how often the handler approved this event, including refused approvals."""
        asked = self._server.requests(self._vm)[since:]
        return sum(_approves(each, event_id) for each in asked)

    def approvals_after_polls(self, event_id: str, polls: int, *, since: int) -> int:
        """Return how often it approved the event after its next `polls` polls since the mark."""
        count = 0
        for each in self._server.requests(self._vm)[since:]:
            polls -= each.kind == "events"
            count += polls < 0 and _approves(each, event_id)
        return count

    def most_approvals_in_a_poll(self, event_id: str) -> int:
        """Return how often at most it approved the event between two polls."""
        most = count = 0
        for each in self._server.requests(self._vm):
            count = 0 if each.kind == "events" else count + _approves(each, event_id)
            most = max(most, count)
        return most

    def poll_pauses_s(self, *, since: int = 0, until: int | None = None) -> list[float]:
        """Return the seconds between each two polls."""
        asked = self._server.timed_requests(self._vm)[since:until]
        times = [each.at_s for each in asked if each.request.kind == "events"]
        return [later - earlier for earlier, later in pairwise(times)]

    def versions(self) -> str:
        """Return the api-versions that the handler used, as text."""
        asked = [*self._server.requests(self._vm, kind="events")]
        asked += self._server.requests(self._vm, kind="approve")
        return ", ".join(sorted({each.version for each in asked})) or "none"

    def has_acted_on(self, event_id: str) -> bool:
        return bool(self.approvals(event_id) or self.log.count(DRAIN, event_id))

    def refusals(self) -> list[str]:
        """Return a line for each kind of malformed request, and what is wrong with it."""
        counts: dict[str, int] = {}
        for each in self._server.refused_requests():
            line = f"{each.method} {each.target}: answered with {each.status} {each.answer.strip()}"
            counts[line] = counts.get(line, 0) + 1
        return [f"{line} ({count} times)" if count > 1 else line for line, count in counts.items()]

    def other_requests(self) -> list[str]:
        """Return a line for each kind of request that was in order, as for instance metadata."""
        asked = self._server.requests(self._vm)
        return sorted({f"for {each.kind} with {each.version}, in order" for each in asked})

    def wait(self, condition: Callable[[], object], *, within_s: float | None = None) -> bool:
        """Return whether `condition` becomes true before the handler ends and time runs out.

        Without `within_s`, the time runs out when the patience is over and the handler has polled
        several times. A handler that polls too seldom for that gets more time, up to a limit.
        """
        mark = self.mark()
        self._wait_until(lambda: condition() or not self.is_alive, within_s)
        if within_s is None and not condition() and self.is_alive:
            self._wait_until(
                lambda: condition() or not self.is_alive or self.polls(since=mark) >= SETTLED_POLLS,
                (_LATE_POLLS_PATIENCES - 1) * self.patience_s,
            )
        return bool(condition())

    def wait_polls(self, more: int) -> bool:
        """Return whether that many more polls come in time.

        The handler has then read all responses but the last.
        """
        wanted = self.polls() + more
        return self.wait(lambda: self.polls() >= wanted)

    def _wait_until(self, condition: Callable[[], object], within_s: float | None = None) -> None:
        """Wait in slices, and count only the time in which the machine let the handler run."""
        left_s = self.patience_s if within_s is None else within_s
        while left_s > 0:
            began_s, delay_s = time.monotonic(), self._delay_s()
            try:
                self._server.wait_until(condition, timeout=min(_SLICE_S, max(left_s, _SLICE_S_MIN)))
                return
            except AssertionError:
                took_s = time.monotonic() - began_s
                delayed_s = max(0.0, self._delay_s() - delay_s)
                left_s -= max(took_s - delayed_s, took_s * _PROGRESS_MIN)

    def _delay_s(self) -> float:
        return 0.0 if self.handler is None else self.handler.scheduling_delay_s()

    def evidence(self, event_id: str = "") -> tuple[str, ...]:
        """Return what was seen of the handler, as lines for the report.

        They are its approvals of the event, its last poll, and what it logged about the event.
        """
        approvals = [*self._request_lines(event_id)]
        if len(approvals) > _EVIDENCE_MAX:
            half = _EVIDENCE_MAX // 2
            left_out = f"… and {len(approvals) - 2 * half} more"
            approvals = [*approvals[:half], left_out, *approvals[-half:]]
        lines = self.log.lines(event_id) if event_id else []
        return (*approvals, *self._last_poll(), *lines[:_EVIDENCE_MAX])

    def _request_lines(self, event_id: str) -> Iterator[str]:
        for at_s, each in self._server.timed_requests(self._vm, kind="approve"):
            if event_id and _approves(each, event_id):
                fault = f", answered with the fault {each.fault}" if each.fault else ""
                yield f"{self._at(at_s)} approved {event_id[:8]} with {each.version}{fault}"

    def _last_poll(self) -> Iterator[str]:
        polls = self._server.timed_requests(self._vm, kind="events")
        if polls:
            at_s, last = polls[-1]
            yield f"{self._at(at_s)} its last poll, with {last.version}; {len(polls)} in all"

    def _at(self, at_s: float) -> str:
        return f"after {at_s - self._began_s:.1f} s:"


def _approves(request: ObservedRequest, event_id: str) -> bool:
    return request.kind == "approve" and event_id in (read_event_ids(request.body) or ())
