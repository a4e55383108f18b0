"""Formats the agent's log lines, for people or as JSON."""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

FORMATS = ("human", "json")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_log = logging.getLogger("fairwarning.agent")


def set_up(form: str, level: str = "info") -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Human())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "apprise", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def say(message: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log a line. The `fields` appear only in the JSON format."""
    _log.log(level, message, extra={"fields": fields})


def warn(message: str, **fields: object) -> None:
    say(message, level=logging.WARNING, **fields)


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = f"{_at(record)} {record.levelname:<7} {_one_line(record.getMessage())}"
        return text if not record.exc_info else f"{text}\n{self.formatException(record.exc_info)}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _at(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _at(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    """Escape line breaks, so that an event or a command cannot forge a log line."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
