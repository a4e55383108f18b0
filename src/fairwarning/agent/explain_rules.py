"""Explains what a rule would do for an event, with templates filled in. This module is pure.

A URL or a message may contain a secret anywhere, so only the values of its templates are shown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from fairwarning.agent.actions.base import Context
from fairwarning.agent.model import (
    Action,
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
from fairwarning.agent.plan import deadline
from fairwarning.agent.records import Record
from fairwarning.agent.templates import known_names, make_context
from fairwarning.client.model import Event, Instance, Status

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
