"""Logs a commit, with one line for each transition."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairwarning.core.instants import format_rfc3339
from fairwarning.core.journal_text import listed, sentence
from fairwarning.core.model import Actor, EventId, Scope
from fairwarning.core.transitions import HOUSEKEEPING, Scheduled, Transition
from fairwarning.engine.protocols import Receipt

_log = logging.getLogger("fairwarning.transitions")


@dataclass(frozen=True, slots=True)
class Commit:
    """The message of a log record. A formatter turns it into one line for each transition."""

    receipt: Receipt
    by: Actor
    why: str
    took_s: float

    def __str__(self) -> str:
        return "\n".join(self.texts())

    def texts(self) -> Iterator[str]:
        return (self._text(transition) for transition in self._transitions())

    def fields(self) -> Iterator[Mapping[str, Any]]:
        scope = self.receipt.scope
        for transition in self._transitions():
            yield {
                "message": self._text(transition),
                "kind": type(transition).__name__,
                "scope": scope.id,
                "event": getattr(transition, "event_id", None),
                "by": str(self.by),
                "why": self.why,
                "revision": scope.revision,
                "at": format_rfc3339(self.receipt.at_ms),
                "took_ms": round(self.took_s * 1000, 3),
            }

    def _transitions(self) -> Iterator[Transition]:
        return (each for each in self.receipt.transitions if not isinstance(each, HOUSEKEEPING))

    def _text(self, transition: Transition) -> str:
        scope = self.receipt.scope
        return f"{scope.id}: {_about(scope, transition)}{sentence(transition)}"


def log_commit(receipt: Receipt, by: Actor, why: str, took_s: float) -> None:
    if receipt.transitions and _log.isEnabledFor(logging.INFO):
        # Not by `_log.info`, because `logging` would search for the calling line, which is slow.
        commit = Commit(receipt, by, why, took_s)
        _log.handle(logging.LogRecord(_log.name, logging.INFO, "", 0, commit, None, None))


def _about(scope: Scope, transition: Transition) -> str:
    """Returns words that name the event. They are empty if the transition's sentence names it."""
    event = scope.events.get(getattr(transition, "event_id", EventId("")))
    if event is None or isinstance(transition, Scheduled):
        return ""
    return f"{event.type} of {listed(event.resources)} ({event.id}) "
