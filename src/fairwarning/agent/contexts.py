"""The context of an action: its event, as values, templates, environment and JSON."""

import json
from collections.abc import Callable, Mapping

from fairwarning.agent.actions.base import Context
from fairwarning.agent.model import Phase
from fairwarning.agent.templates import environment_of, event_object, filler, values_of
from fairwarning.client.model import Event, Instance


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
    """`purpose` is `do`, `undo` or `hold`; commands have it as FAIRWARNING_PURPOSE."""
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
