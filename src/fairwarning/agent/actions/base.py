"""The interface of every kind of action: do and undo, with the context of an event."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fairwarning.agent.model import Action, Phase
from fairwarning.client.model import Event, Instance


class ActionFailed(Exception):
    """An action failed; the message says why in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an action knows about the event that it runs for."""

    event: Event
    me: Instance
    phase: Phase
    time_left_s: float
    """How many seconds are left until the action is cut off."""
    environment: Mapping[str, str]
    """Environment variables for commands, in addition to the agent's own."""
    payload: str
    """The event as JSON, for the standard input of a command."""
    render: Callable[[str], str]
    """Fills in the templates of a text."""
    render_json: Callable[[str], str]
    """Fills in the templates of a JSON text: values are escaped as in its strings."""
    keep: Callable[[str, str], None] = lambda _, __: None
    """Stores a value for the undo, on disk before it returns: `keep("active", "a b")`."""
    kept: Mapping[str, str] | None = None
    """The values that were kept so far, also before a crash; None if there are none."""


class ActionHandler(Protocol):
    """Does and undoes one kind of action.

    Both methods may be called again after they were cut off at any point, and must then reach
    the same result. An action is cut off by cancelling it; whatever it started must have ended
    when the cancellation is raised.
    """

    async def do(self, action: Action, context: Context) -> None:
        """Raises ActionFailed."""

    async def undo(self, action: Action, context: Context) -> None:
        """Raises ActionFailed."""


def reason(problem: OSError) -> str:
    """Return why a connection failed, without what asyncio adds to the reason."""
    if problem.errno is not None and problem.errno > 0:
        return os.strerror(problem.errno)
    return problem.strerror or type(problem).__name__
