"""Fills in the templates of the config, such as `{event.id}`. This module is pure.

There is a fixed set of names. Braces stay as they are if they contain anything but a lower-case
name, so JSON and `${VARIABLE}` need no escapes.
"""

import json
import re
from collections.abc import Callable, Mapping

from fairwarning.agent.actions.base import Context
from fairwarning.agent.config.model import Phase
from fairwarning.client.model import Event, Instance

NAMES = {
    "event.id": "the event's id",
    "event.type": "Freeze, Reboot, Redeploy, Preempt, Terminate",
    "event.status": "Scheduled or Started",
    "event.not_before": "when it may begin, as 2026-01-31T12:00:00Z; empty once it has",
    "event.description": "as the service says it",
    "event.source": "Platform or User",
    "event.duration": "in seconds; empty if nobody knows",
    "event.resources": "names of the VMs, with commas between",
    "event.json": "all of that as a JSON object",
    "me": "this VM's name",
    "me.resource_group": "as the service says it, like the next",
    "me.location": "",
    "me.scale_set": "",
    "me.update_domain": "",
    "phase": "scheduled, started, finished or cancelled",
    "time_left": "whole seconds until the action is cut off",
}
_TEMPLATE = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)\}")


def unknown_names(text: str) -> list[str]:
    return [name for name in _TEMPLATE.findall(text) if name not in NAMES]


def known_names(text: str) -> list[str]:
    return [name for name in _TEMPLATE.findall(text) if name in NAMES]


def fill(text: str, values: Mapping[str, str]) -> str:
    return _TEMPLATE.sub(lambda found: values.get(found[1], found[0]), text)


def fill_json(text: str, values: Mapping[str, str]) -> str:
    """Fill in the templates of a JSON text. Values are escaped, so they cannot end their string."""
    escaped = {
        name: value if name == "event.json" else json.dumps(value)[1:-1]
        for name, value in values.items()
    }
    return fill(text, escaped)


def values_of(event: Event, me: Instance, phase: Phase, time_left_s: float) -> dict[str, str]:
    return {
        "event.id": event.id,
        "event.type": event.type,
        "event.status": event.status.value,
        "event.not_before": _instant(event),
        "event.description": event.description,
        "event.source": event.source,
        "event.duration": "" if event.duration_s is None else str(event.duration_s),
        "event.resources": ",".join(event.resources),
        "event.json": json.dumps(event_object(event), separators=(",", ":")),
        "me": me.name,
        "me.resource_group": me.resource_group,
        "me.location": me.location,
        "me.scale_set": me.scale_set,
        "me.update_domain": me.update_domain,
        "phase": phase.value,
        "time_left": str(int(time_left_s)),
    }


def environment_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for commands, such as `FAIRWARNING_EVENT_ID`."""
    return {
        "FAIRWARNING_" + name.upper().replace(".", "_"): value
        for name, value in values.items()
        if name != "event.json" and "\0" not in value
    }


def event_object(event: Event) -> dict[str, object]:
    """Return the event as a dict with the service's field names, for all api-versions together."""
    return {
        "EventId": event.id,
        "EventType": event.type,
        "EventStatus": event.status.value,
        "ResourceType": "VirtualMachine",
        "Resources": list(event.resources),
        "NotBefore": _instant(event),
        "Description": event.description,
        "EventSource": event.source,
        "DurationInSeconds": -1 if event.duration_s is None else event.duration_s,
    }


def filler(values: Mapping[str, str], *, is_json: bool = False) -> Callable[[str], str]:
    chosen = fill_json if is_json else fill
    return lambda text: chosen(text, values)


def _instant(event: Event) -> str:
    if event.not_before is None:
        return ""
    return event.not_before.isoformat(timespec="seconds").replace("+00:00", "Z")


def make_context(
    event: Event,
    me: Instance,
    phase: Phase,
    time_left_s: float,
    *,
    purpose: str,
    keep: Callable[[str, str], None] = lambda _, __: None,
    kept: Mapping[str, str] | None = None,
) -> Context:
    """Return the context of an action. `purpose` is `do`, `undo` or `hold`."""
    values = values_of(event, me, phase, time_left_s)
    return Context(
        event=event,
        me=me,
        phase=phase,
        time_left_s=time_left_s,
        environment={**environment_of(values), "FAIRWARNING_PURPOSE": purpose},
        payload=json.dumps(
            {"event": event_object(event), "me": me.name, "phase": phase.value, "purpose": purpose}
        ),
        render=filler(values),
        render_json=filler(values, is_json=True),
        keep=keep,
        kept=kept,
    )
