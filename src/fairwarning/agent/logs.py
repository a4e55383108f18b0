"""The agent's log: the sentence of each step and its lines, for people or as JSON."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from fairwarning.agent.config.model import Phase, title_of
from fairwarning.agent.records import Memory, Place, Record
from fairwarning.agent.steps import (
    Adopt,
    Approve,
    CutOff,
    Do,
    Forget,
    Release,
    Skip,
    Step,
    Undo,
    Work,
)
from fairwarning.agent.templates import fill, values_of
from fairwarning.client.model import Event, Instance
from fairwarning.common.durations import human_s
from fairwarning.common.escape import log_line

FORMATS = ("human", "json")
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
        text = f"{_at(record)} {record.levelname:<7} {log_line(record.getMessage())}"
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


def log_phase(record: Record, now: datetime) -> None:
    event = record.event
    rule = "no rule fits" if record.rule is None else f"rule {record.rule.name!r}"
    when = _when(event, now) if record.phase is Phase.SCHEDULED else ""
    mine = "" if record.is_mine else " (of others)"
    say(
        f"{about(event)}{mine} is {record.phase}{when}; {rule}",
        event=event.id,
        type=event.type,
        phase=record.phase.value,
        resources=list(event.resources),
        rule=None if record.rule is None else record.rule.name,
    )


def log_step(step: Step, memory: Memory, me: Instance) -> None:
    match step:
        case Do() | Undo():
            word = "doing" if isinstance(step, Do) else "undoing"
            _say(word, step.place, memory, me, undo=isinstance(step, Undo))
        case Adopt():
            _say("done already, for another event", step.place, memory, me)
        case Release():
            _say("not undone yet, as another event needs it", step.place, memory, me)
        case Skip():
            _warn("left out", step.place, memory, me, step.why)
        case CutOff():
            _warn("cut off", step.place, memory, me, step.why)
        case Approve():
            say("approving", event=step.event_id)
        case Forget():
            say("all is done and undone", event=step.event_id)
        case _:
            pass


def log_success(step: Work, memory: Memory, me: Instance) -> None:
    match step:
        case Do() | Undo():
            word = "done" if isinstance(step, Do) else "undone"
            _say(word, step.place, memory, me, undo=isinstance(step, Undo))
        case Approve():
            say("approved", event=step.event_id)
        case _:
            pass


def log_failure(step: Work, memory: Memory, me: Instance, why: str) -> None:
    match step:
        case Do():
            _warn("failed", step.place, memory, me, why)
        case Undo():
            _warn("could not be undone", step.place, memory, me, why, "; trying again later")
        case _:
            pass


def _say(word: str, place: Place, memory: Memory, me: Instance, *, undo: bool = False) -> None:
    """Log a step of an action. If `undo` is true, the line also has the undo command, if any."""
    action = memory.action(place)
    title = _filled(action.title, place, memory, me)
    by = ""
    if undo and action.undo is not None:
        by = f", by {_filled(title_of(action.undo), place, memory, me)}"
    say(f"{word}: {title}{by}", event=place.event_id, action=title)


def _warn(word: str, place: Place, memory: Memory, me: Instance, why: str, after: str = "") -> None:
    title = _filled(memory.action(place).title, place, memory, me)
    warn(f"{word}: {title} ({why}){after}", event=place.event_id, action=title)


def _filled(text: str, place: Place, memory: Memory, me: Instance) -> str:
    """Fill in the templates except `{time_left}`, which is known only while the action runs."""
    values = values_of(memory.records[place.event_id].event, me, place.phase, 0.0)
    del values["time_left"]
    return fill(text, values)


def about(event: Event) -> str:
    names = ", ".join(event.resources[:4]) + (" …" if len(event.resources) > 4 else "")
    return f"{event.type or 'an event'} of {names or 'nobody'} ({event.id})"


def _when(event: Event, now: datetime) -> str:
    if event.not_before is None:
        return ""
    at = event.not_before.isoformat(timespec="seconds").replace("+00:00", "Z")
    return f" for {at}, in {human_s(event.time_left_s(now))}"
