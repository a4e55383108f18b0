"""The formats of a log line: for people, and JSON. A commit has a line for each transition."""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.core.journal_text import listed, sentence
from fairwarning.core.model import Actor, EventId, Scope
from fairwarning.core.transitions import HOUSEKEEPING, Scheduled, Transition
from fairwarning.engine.protocols import Receipt

_log = logging.getLogger("fairwarning.transitions")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


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


class HumanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        head = f"{_at(record)} {record.levelname:<7} "
        message = record.msg
        texts = message.texts() if isinstance(message, Commit) else (record.getMessage(),)
        text = "\n".join([f"{head}{_one_line(each)}" for each in texts])
        return text if not record.exc_info else f"{text}\n{self.formatException(record.exc_info)}"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if not isinstance(record.msg, Commit):
            return self._line(record, {"message": record.getMessage()})
        return "\n".join([self._line(record, fields) for fields in record.msg.fields()])

    def _line(self, record: logging.LogRecord, fields: Mapping[str, Any]) -> str:
        line: dict[str, Any] = {
            "time": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **fields,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _at(record: logging.LogRecord) -> str:
    return format_rfc3339(Instant(int(record.created * 1000)))


def _one_line(text: str) -> str:
    """Escapes control characters, so that no caller can add a false line to the log."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
