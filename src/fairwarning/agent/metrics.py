"""Keeps the numbers that Prometheus and the probes read.

It uses no library, because one would be larger than the rest of the agent.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable

STALE_S = 120.0
"""After this many seconds without an answer, the service counts as down. It is several polls, so
that one lost answer does not matter.
"""
_HELP = {
    "polls_total": ("counter", "Polls of the service."),
    "poll_failures_total": ("counter", "Polls that told nothing."),
    "events_total": ("counter", "Changes of events, by what they came to."),
    "actions_total": ("counter", "Actions, by what was asked of them and how it ended."),
    "approvals_total": ("counter", "Approvals, by how they ended."),
    "state_writes_failed_total": ("counter", "Times that the state could not be written."),
    "events": ("gauge", "Events that are not over, or for which something is still to be done."),
    "undo_owed": ("gauge", "Actions that are to be undone and could not be so far."),
    "last_document_age_seconds": ("gauge", "Since the service last told what is."),
    "start_time_seconds": ("gauge", "When this agent started."),
}
_ALWAYS = ("polls_total", "poll_failures_total", "state_writes_failed_total")
"""Counters without labels. They are shown as 0 before anything was counted."""
_Label = tuple[tuple[str, str], ...]


class Metrics:
    """The counters and gauges of one agent."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._started_s = time.time()
        self._counts: Counter[tuple[str, _Label]] = Counter()
        self._gauges: dict[str, float] = {}
        self._answered_s: float | None = None
        self.is_state_written = True

    def polled(self, *, is_answer: bool, is_failure: bool) -> None:
        self.count("polls_total")
        if is_answer:
            self._answered_s = self._monotonic_s()
        if is_failure:
            self.count("poll_failures_total")

    def count(self, name: str, **labels: str) -> None:
        self._counts[name, tuple(labels.items())] += 1

    def gauge(self, name: str, value: float) -> None:
        self._gauges[name] = value

    @property
    def age_s(self) -> float | None:
        return None if self._answered_s is None else self._monotonic_s() - self._answered_s

    @property
    def not_ready(self) -> str:
        """Why the agent is not ready. It is empty if the agent is ready."""
        if self.age_s is None:
            return "the service has not answered yet"
        if self.age_s > STALE_S:
            return f"the service has not answered for {int(self.age_s)} s"
        return "" if self.is_state_written else "the state cannot be written"

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        lines: list[str] = []
        gauges = {**self._gauges, "start_time_seconds": self._started_s}
        if self.age_s is not None:
            gauges["last_document_age_seconds"] = round(self.age_s, 3)
        for name, (kind, text) in _HELP.items():
            samples = [*self._samples(name)]
            if name in gauges:
                samples = [f"fairwarning_agent_{name} {gauges[name]:.16g}"]
            elif not samples and name in _ALWAYS:
                samples = [f"fairwarning_agent_{name} 0"]
            if samples:
                lines += [f"# HELP fairwarning_agent_{name} {text}"]
                lines += [f"# TYPE fairwarning_agent_{name} {kind}", *samples]
        return "".join(f"{line}\n" for line in lines)

    def _samples(self, name: str) -> Iterable[str]:
        for (counted, labels), count in sorted(self._counts.items()):
            if counted == name:
                shown = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels)
                braces = f"{{{shown}}}" if shown else ""
                yield f"fairwarning_agent_{name}{braces} {count}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
