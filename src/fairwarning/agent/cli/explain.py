"""`fairwarning agent explain` shows which rule an event takes, and what the rule would do.

Templates are filled in. A URL or a message may contain a secret anywhere, so only the values of its
templates are shown.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fairwarning.agent.actions.base import Context
from fairwarning.agent.cli.event_options import MadeUpEvent, event_options
from fairwarning.agent.cli.main import config_option, json_option, load, problems_of, who_am_i
from fairwarning.agent.config.model import (
    Action,
    Approve,
    Config,
    HaProxy,
    Hold,
    Http,
    Kubernetes,
    Nginx,
    Notify,
    OnFailure,
    Patroni,
    Phase,
    Run,
    Settings,
    Systemd,
    title_of,
)
from fairwarning.agent.config.reader import TYPES
from fairwarning.agent.logs import about
from fairwarning.agent.plan import deadline
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.rules import Verdict
from fairwarning.agent.rules import explain as explain_event
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.templates import known_names, make_context
from fairwarning.client import ScheduledEvents, Seen
from fairwarning.client.model import Event, Instance, Status
from fairwarning.client.parse_document import read_document
from fairwarning.common.command_errors import Problem
from fairwarning.common.durations import human_s
from fairwarning.common.escape import one_line

_EXAMPLES = """\b
Examples:
  fairwarning agent explain                       the events there are now
  fairwarning agent explain --type Preempt
  fairwarning agent explain --type Freeze --duration 9s --description "host update"
  fairwarning agent explain --event '{"EventId": "A", "EventType": "Reboot"}'
"""


_UNDONE = (Phase.SCHEDULED, Phase.STARTED)
_VARIABLE = re.compile(r"FAIRWARNING_[A-Z_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionExplanation:
    phase: Phase
    name: str
    """The name in the config. It is empty if the action has no name."""
    does: str
    undo: str | None
    """What the undo does. It is None if the action is not undone."""
    goes_on: bool
    """Whether the next actions still run if this one fails."""


@click.command(epilog=_EXAMPLES)
@config_option
@click.option("--name", default="", help="Name of this VM (default: ask the service).")
@click.option(
    "--type", "type_", type=click.Choice(TYPES, case_sensitive=False), help="Type of the event."
)
@event_options
@click.option(
    "--event",
    "raw",
    metavar="JSON",
    help="Event as JSON, as the service sends it. It replaces the other options about the event.",
)
@json_option
def explain(
    path: Path,
    name: str,
    type_: str | None,
    wanted: MadeUpEvent,
    raw: str | None,
    is_json: bool,
) -> None:
    """Show which rule of the config applies to an event, and why."""
    with problems_of(path):
        config = load(path)
        me = who_am_i(config, name)
        now = datetime.now(UTC)
        if raw is not None:
            events = [_read(raw)]
        elif type_ is not None:
            events = [wanted.of(type_, me.name, now)]
        else:
            events, now = _current(config)
    if is_json:
        click.echo(json.dumps({"events": [_object(config, each, me, now) for each in events]}))
        return
    for event in events:
        _tell(config, event, me, now)
    if not events:
        click.echo("There is no event now. To ask about one that might come, use --type.")


def _read(raw: str) -> Event:
    try:
        body = json.dumps({"DocumentIncarnation": 1, "Events": [json.loads(raw)]}).encode()
        found = read_document(body, version="2020-07-01").events
    except (ValueError, RecursionError) as problem:
        raise Problem(f"--event is no JSON: {problem}") from None
    if not found:
        raise Problem("--event must be one event as the service shows it, with an EventId")
    return found[0]


def _current(config: Config) -> tuple[list[Event], datetime]:
    with ScheduledEvents(config.endpoint or None) as service:
        return list(service.get().events), service.now()


def _object(config: Config, event: Event, me: Instance, now: datetime) -> dict[str, Any]:
    verdicts = explain_event(config, event, me, now)
    chosen = next((each.rule.name for each in verdicts if each.is_chosen), None)
    rules = [
        {
            "name": each.rule.name,
            "fits": not each.against,
            "because": [*(each.against or each.in_favour)],
        }
        for each in verdicts
    ]
    record = _record(config, event, me, now)
    actions = [
        {
            "phase": each.phase,
            "name": each.name,
            "does": each.does,
            "undo": each.undo,
            "goesOn": each.goes_on,
        }
        for each in explain_actions(record, me, now)
    ]
    return {
        "id": event.id,
        "type": event.type,
        "rule": chosen,
        "rules": rules,
        "actions": actions,
    }


def _tell(config: Config, event: Event, me: Instance, now: datetime) -> None:
    left_s = event.time_left_s(now)
    click.echo(one_line(f"{about(event)}, {human_s(left_s)} before it may begin:"))
    verdicts = explain_event(config, event, me, now)
    for each in verdicts:
        click.echo(f"  {_sentence(each)}")
    record = _record(config, event, me, now)
    if record.rule is None:
        click.echo("No rule fits: the agent does nothing, and does not approve.")
        return
    for shown in explain_actions(record, me, now):
        click.echo(one_line(_action(shown)))
    click.echo(one_line(_approval(record.rule.approve, record, me, now)))


def _record(config: Config, event: Event, me: Instance, now: datetime) -> Record:
    """Return the record that the agent would make when it first sees the event."""
    memory, _ = update_events(Memory(), Seen(events={event.id: event}), config, me, now)
    return memory.records[event.id]


def _sentence(verdict: Verdict) -> str:
    name = verdict.rule.name
    if verdict.against:
        return one_line(f"- {name} does not fit: {'; '.join(verdict.against)}")
    taken = "is taken" if verdict.is_chosen else "fits too, but comes later"
    return one_line(f"{'*' if verdict.is_chosen else '-'} {name} {taken}: "
                    f"{'; '.join(verdict.in_favour)}")  # fmt: skip


def _action(shown: ActionExplanation) -> str:
    name = f"{shown.name}: " if shown.name else ""
    undo = "" if shown.undo is None else f"; undone by {shown.undo}"
    how = "; goes on if it fails" if shown.goes_on else ""
    return f"{shown.phase}: {name}{shown.does}{undo}{how}"


def _approval(policy: Approve, record: Record, me: Instance, now: datetime) -> str:
    if not record.is_mine:
        return f"approve: never, as it does not concern {me.name}"
    lead = "" if policy.lead_s is None else f", {human_s(policy.lead_s)} before it begins"
    hold = ""
    if policy.hold is not None:
        hold = f", unless held by {explain_hold(policy.hold, record, me, now)}"
    return f"approve: {policy.when}{lead}{hold}; with other VMs: {policy.shared}"


def explain_actions(record: Record, me: Instance, now: datetime) -> Iterator[ActionExplanation]:
    """Yield an explanation of each action of the record's rule, phase by phase."""
    for phase in Phase:
        for _, action in record.actions(phase):
            event = _as_in(phase, record.event)
            left_s = _left_s(record, phase, action, now)
            context = make_context(event, me, phase, left_s, purpose="do")
            yield ActionExplanation(
                phase=phase,
                name=action.name,
                does=settings_text(action.settings, context),
                undo=_undo(action, record.event, me, phase) if phase in _UNDONE else None,
                goes_on=action.on_failure is OnFailure.CONTINUE,
            )


def explain_hold(hold: Hold, record: Record, me: Instance, now: datetime) -> str:
    left_s = record.event.time_left_s(now)
    context = make_context(record.event, me, Phase.SCHEDULED, left_s, purpose="hold")
    return settings_text(Run(command=hold.command, is_shell=hold.is_shell), context)


def settings_text(settings: Settings, context: Context) -> str:
    title = title_of(settings)
    match settings:
        case Run(is_shell=True):
            # A text for the shell is never filled in. It gets the values as environment variables.
            known = context.environment
            named = dict.fromkeys(_VARIABLE.findall(settings.command[-1]))
            return title + _with({name: known[name] for name in named if name in known})
        case Http():
            texts = (settings.url, *settings.headers.values(), settings.body)
            return context.render(title) + _with(_values(texts, context))
        case Notify():
            return title + _with(_values((settings.url, settings.title, settings.body), context))
        case _:
            return context.render(title)


def _undo(action: Action, event: Event, me: Instance, phase: Phase) -> str | None:
    event = _as_in(Phase.FINISHED, event)
    context = make_context(event, me, phase, action.timeout_s, purpose="undo")
    if action.undo is not None:
        return settings_text(action.undo, context)
    match action.settings:
        case Kubernetes(node=node):
            return context.render(f"kubernetes uncordon {node}")
        case Systemd(stop=units):
            return context.render(f"systemd start {' '.join(reversed(units))}, those that ran")
        case HaProxy(server=server):
            return context.render(f"haproxy ready {server}")
        case Nginx(upstream=upstream, server=server):
            return context.render(f"nginx {upstream}/{server} up")
        case Patroni(switch_back=True):
            return "patroni switchover back to this member, if it was the leader"
        case _:
            return None


def _left_s(record: Record, phase: Phase, action: Action, now: datetime) -> float:
    ends_at = deadline(record)
    if phase is not Phase.SCHEDULED or ends_at is None:
        return action.timeout_s
    return max(0.0, min(action.timeout_s, (ends_at - now).total_seconds()))


def _as_in(phase: Phase, event: Event) -> Event:
    """Return the event as the service would show it in that phase."""
    if phase in (Phase.SCHEDULED, Phase.CANCELLED):
        return event
    return replace(event, status=Status.STARTED, not_before=None)


def _values(texts: tuple[str, ...], context: Context) -> dict[str, str]:
    names = dict.fromkeys(name for text in texts for name in known_names(text))
    return {f"{{{name}}}": context.render(f"{{{name}}}") for name in names}


def _with(values: dict[str, str]) -> str:
    told = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    return f" with {told}" if told else ""
