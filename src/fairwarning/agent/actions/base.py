"""What every kind of action is: something that can be done, and undone."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fairwarning.agent.model import Action, Phase
from fairwarning.client.model import Event, Instance


class ActionFailed(Exception):
    """It did not work; the message says what went wrong, in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The event that an action runs for."""

    event: Event
    me: Instance
    phase: Phase
    time_left_s: float
    """Until the action is cut off, if it is one that has to be done before the event."""
    environment: Mapping[str, str]
    """For commands, on top of the agent's own."""
    payload: str
    """The event as JSON, for a command's standard input."""
    render: Callable[[str], str]
    """Fills in the templates of a text."""
    render_json: Callable[[str], str]
    """The same for a text that is JSON: values are escaped as inside of its strings."""
    keep: Callable[[str, str], None] = lambda _, __: None
    """Remembers something for the undo on disk, before it returns: `keep("active", "a b")`."""
    kept: Mapping[str, str] | None = None
    """What was kept so far, also by an attempt before a crash; None if nothing was."""


class Doer(Protocol):
    """Both may be called again after they were cut off anywhere, and must then come to the
    same end. The runner gives the time: cancelling is how an action is cut off, and whatever
    it started must be gone when the cancellation comes out."""

    async def do(self, action: Action, context: Context) -> None:
        """Raises ActionFailed."""

    async def undo(self, action: Action, context: Context) -> None:
        """Raises ActionFailed."""


# Why a connection failed, in words for people. Pure.
def reason(problem: OSError) -> str:
    """asyncio puts its own words and the address where the reason would be."""
    if problem.errno is not None and problem.errno > 0:
        return os.strerror(problem.errno)
    return problem.strerror or type(problem).__name__
