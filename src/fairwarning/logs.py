"""Logs: a line for each transition and for whatever needs a look, for people or as JSON."""

import json
import logging
import re
import sys
from typing import Any

from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.core.model import Actor, EventId, Scope
from fairwarning.core.sentences import listed, sentence
from fairwarning.core.transitions import HOUSEKEEPING, Scheduled, Transition
from fairwarning.engine.ports import START, Entry, Receipt

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
FORMATS = ("human", "json")
_transitions = logging.getLogger("fairwarning.transitions")


def set_up(form: str, level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Human())
    # None of our lines shows these, and each is asked for with every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "apprise", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Its warnings are about what clients send, and those are answered.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def log_commit(receipt: Receipt, by: Actor, why: str, took_s: float) -> None:
    """One line for each transition of a commit of this node."""
    if not _transitions.isEnabledFor(logging.INFO):
        return
    scope = receipt.scope
    for transition in receipt.transitions:
        if isinstance(transition, HOUSEKEEPING):
            continue
        entry = Entry(
            position=START,
            scope_id=scope.id,
            revision=scope.revision,
            at_ms=receipt.at_ms,
            by=by,
            why=why,
            transition=transition,
        )
        fields = {
            "kind": type(transition).__name__,
            "scope": scope.id,
            "event": getattr(transition, "event_id", None),
            "by": str(by),
            "why": why,
            "revision": scope.revision,
            "at": format_rfc3339(receipt.at_ms),
            "took_ms": round(took_s * 1000, 3),
        }
        about = _about(scope, transition)
        text = f"{scope.id}: {about}{sentence(entry)}"
        # Made by hand: looking for the line that called costs more than all the rest.
        record = logging.LogRecord(_transitions.name, logging.INFO, "", 0, text, None, None)
        record.fields = fields
        _transitions.handle(record)


def _about(scope: Scope, transition: Transition) -> str:
    """Which event it is, unless the sentence says so itself."""
    event = scope.events.get(getattr(transition, "event_id", EventId("")))
    if event is None or isinstance(transition, Scheduled):
        return ""
    return f"{event.type} of {listed(event.resources)} ({event.id}) "


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = f"{_at(record)} {record.levelname:<7} {_one_line(record.getMessage())}"
        return text if not record.exc_info else f"{text}\n{self.formatException(record.exc_info)}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _at(record: logging.LogRecord) -> str:
    return format_rfc3339(Instant(int(record.created * 1000)))


def _one_line(text: str) -> str:
    """What callers send must not be able to forge a line."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
