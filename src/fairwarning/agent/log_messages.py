"""Writes what the agent does into its log."""

from datetime import datetime

from fairwarning.agent import logs
from fairwarning.agent.model import Phase, title_of
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


def log_phase(record: Record, now: datetime) -> None:
    event = record.event
    rule = "no rule fits" if record.rule is None else f"rule {record.rule.name!r}"
    when = _when(event, now) if record.phase is Phase.SCHEDULED else ""
    mine = "" if record.is_mine else " (of others)"
    logs.say(
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
            logs.say("approving", event=step.event_id)
        case Forget():
            logs.say("all is done and undone", event=step.event_id)
        case _:
            pass


def log_success(step: Work, memory: Memory, me: Instance) -> None:
    match step:
        case Do() | Undo():
            word = "done" if isinstance(step, Do) else "undone"
            _say(word, step.place, memory, me, undo=isinstance(step, Undo))
        case Approve():
            logs.say("approved", event=step.event_id)
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
    logs.say(f"{word}: {title}{by}", event=place.event_id, action=title)


def _warn(word: str, place: Place, memory: Memory, me: Instance, why: str, after: str = "") -> None:
    title = _filled(memory.action(place).title, place, memory, me)
    logs.warn(f"{word}: {title} ({why}){after}", event=place.event_id, action=title)


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
