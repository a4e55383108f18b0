"""The two formats of a log line: for people, and JSON."""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.logs.commit_messages import Commit

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


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
