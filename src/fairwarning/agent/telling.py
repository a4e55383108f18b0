"""What the agent says of its work, in the log."""

from datetime import datetime

from fairwarning.agent import logs
from fairwarning.agent.durations import human_s
from fairwarning.agent.model import Phase, title_of
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.steps import Approve, CutOff, Do, Forget, Skip, Step, Undo, Work
from fairwarning.client.model import Event


def tell_moved(record: Record, now: datetime) -> None:
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


def tell_step(step: Step, memory: Memory) -> None:
    match step:
        case Do() | Undo():
            word = "doing" if isinstance(step, Do) else "undoing"
            logs.say(f"{word}: {_title(step, memory)}", event=step.place.event_id)
        case Skip():
            title = memory.action(step.place).title
            logs.warn(f"left out: {title} ({step.why})", event=step.place.event_id)
        case CutOff():
            title = memory.action(step.place).title
            logs.warn(f"cut off: {title} ({step.why})", event=step.place.event_id)
        case Approve():
            logs.say("approving", event=step.event_id)
        case Forget():
            logs.say("all is done and undone", event=step.event_id)
        case _:
            pass


def tell_success(step: Work, memory: Memory) -> None:
    match step:
        case Do() | Undo():
            word = "done" if isinstance(step, Do) else "undone"
            logs.say(f"{word}: {_title(step, memory)}", event=step.place.event_id)
        case Approve():
            logs.say("approved", event=step.event_id)
        case _:
            pass


def tell_failure(step: Work, memory: Memory, why: str) -> None:
    if isinstance(step, Do | Undo):
        word = "failed" if isinstance(step, Do) else "could not be undone"
        after = "" if isinstance(step, Do) else "; trying again later"
        title = memory.action(step.place).title
        logs.warn(f"{word}: {title} ({why}){after}", event=step.place.event_id)


def _title(step: Do | Undo, memory: Memory) -> str:
    """Of an undo that has its own command, that one too."""
    action = memory.action(step.place)
    if isinstance(step, Do) or action.undo is None:
        return action.title
    return f"{action.title}, by {title_of(action.undo)}"


def about(event: Event) -> str:
    names = ", ".join(event.resources[:4]) + (" …" if len(event.resources) > 4 else "")
    return f"{event.type or 'an event'} of {names or 'nobody'} ({event.id})"


def _when(event: Event, now: datetime) -> str:
    if event.not_before is None:
        return ""
    at = event.not_before.isoformat(timespec="seconds").replace("+00:00", "Z")
    return f" for {at}, in {human_s(event.time_left_s(now))}"
