"""The log has a line for each transition and for each problem, for people or as JSON."""

import asyncio
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TextIO

from fairwarning.common.escape import log_line
from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.core.journal_text import listed, sentence
from fairwarning.core.model import Actor, EventId, Scope
from fairwarning.core.transitions import HOUSEKEEPING, Scheduled, Started, Transition
from fairwarning.engine.protocols import Receipt

FORMATS = ("human", "json")

_log = logging.getLogger("fairwarning.transitions")


def set_up(form: str, level: str) -> None:
    """Sends all log lines to standard error. `form` is one of FORMATS."""
    handler = BufferedHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else HumanFormatter())
    # Our lines show neither thread nor process, and to look them up would cost time for each line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "apprise", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # uvicorn's warnings are about bad requests, and those clients get an error as the answer.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


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
    """Log the transitions, as a warning if an event was started late."""
    level = logging.WARNING if any(map(_is_late, receipt.transitions)) else logging.INFO
    if receipt.transitions and _log.isEnabledFor(level):
        # Not by `_log.info`, because `logging` would search for the calling line, which is slow.
        commit = Commit(receipt, by, why, took_s)
        _log.handle(logging.LogRecord(_log.name, level, "", 0, commit, None, None))


def _is_late(transition: Transition) -> bool:
    return isinstance(transition, Started) and transition.late_ms > 0


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
        text = "\n".join([f"{head}{log_line(each)}" for each in texts])
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


class BufferedHandler(logging.StreamHandler[TextIO]):
    """Buffers lines of level INFO and below until the event loop's next iteration. A line above
    INFO, or from outside an event loop, is written at once.

    A commit for sixty callers has about two hundred lines. To write them one by one would cost
    the server more than the commit itself.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._texts: list[str] = []
        self._flushing_loop: asyncio.AbstractEventLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
            return
        if text:
            self._texts.append(text)
        if record.levelno > logging.INFO or not self._flushes_later():
            self.flush()

    def flush(self) -> None:
        self.acquire()
        try:
            self._write_out()
        finally:
            self.release()

    def _write_out(self) -> None:
        self._flushing_loop = None
        texts, self._texts = self._texts, []
        if not texts:
            return
        # If the log cannot be written, the failure cannot be logged either.
        with suppress(OSError, ValueError):
            self.stream.write("".join(f"{text}{self.terminator}" for text in texts))
            self.stream.flush()

    def _flushes_later(self) -> bool:
        """Plans a flush and returns True. Outside an event loop it only returns False."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if self._flushing_loop is not loop:
            self._flushing_loop = loop
            loop.call_soon(self.flush)
        return True
