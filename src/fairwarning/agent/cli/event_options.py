"""The options of `agent explain` and `agent test` that describe a made-up event.

Both have the same options with the same defaults, so both pick the same rule.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

import click

from fairwarning.agent.self_test import made_up
from fairwarning.client.model import Event
from fairwarning.common.durations import parse_duration_s


def _duration(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    found = parse_duration_s(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no duration; write one like 30s or 15m")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpEvent:
    """What the options say about the event."""

    source: str
    description: str
    duration: float | None
    notice: float | None
    resources: tuple[str, ...]

    def of(self, type: str, name: str, now: datetime) -> Event:
        """Return the event of this type that is announced now for the VM `name`."""
        event = replace(
            made_up(type, name, now),
            source=self.source,
            description=self.description,
            duration_s=None if self.duration is None else int(self.duration),
        )
        if self.notice is not None:
            event = replace(event, not_before=now + timedelta(seconds=self.notice))
        return replace(event, resources=self.resources) if self.resources else event


_OPTIONS = (
    click.option(
        "--source", default="Platform", show_default=True, help="EventSource of the event."
    ),
    click.option("--description", default="", help="Description of the event."),
    click.option("--duration", callback=_duration, metavar="D", help="Duration of the impact."),
    click.option(
        "--notice",
        callback=_duration,
        metavar="D",
        help="Time until the event may start (default: as usual for its type).",
    ),
    click.option(
        "--resource",
        "resources",
        multiple=True,
        help="Name of a VM that the event affects; repeatable (default: this VM).",
    ),
)


def event_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, and pass it a `MadeUpEvent` as `wanted`."""

    @wraps(command)
    def run(**given: Any) -> None:
        described = {each.name: given.pop(each.name) for each in fields(MadeUpEvent)}
        command(wanted=MadeUpEvent(**described), **given)

    decorated: Callable[..., None] = run
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
