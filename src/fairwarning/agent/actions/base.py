"""The interface that every kind of action has: `do` and `undo`, with the context of an event."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from fairwarning.agent.config.model import Action, Phase, Settings
from fairwarning.client.model import Event, Instance

S = TypeVar("S", bound=Settings)


class ActionFailed(Exception):
    """An action failed. The message says why in one line."""


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
    """Fills in the templates of a JSON text. Values are escaped for use in JSON strings."""
    keep: Callable[[str, str], None] = lambda _, __: None
    """Stores a value for the undo, as in `keep("active", "a b")`. It is on disk on return."""
    kept: Mapping[str, str] | None = None
    """The values that `keep` has stored so far, even before a crash. It is None at first."""


class ActionHandler(Protocol):
    """Does and undoes one kind of action.

    Both methods may be cut off at any point and called again, and must then reach the same result.
    An action is cut off by cancelling it. Everything that it started must have ended when it raises
    CancelledError.
    """

    async def do(self, action: Action, context: Context) -> None:
        """Do the action. Raises ActionFailed if it did not work."""

    async def undo(self, action: Action, context: Context) -> None:
        """Undo the action. Raises ActionFailed if that did not work."""


def settings_of(action: Action, kind: type[S]) -> S:
    """Return the settings of the action as the type that its handler expects."""
    assert isinstance(action.settings, kind)
    return action.settings


def reason(problem: OSError) -> str:
    """Return why a connection failed, without the words that asyncio adds."""
    if problem.errno is not None and problem.errno > 0:
        return os.strerror(problem.errno)
    return problem.strerror or type(problem).__name__
