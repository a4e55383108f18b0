"""The condition that a test waits for: how it is asked, and what it is called when it fails."""

import inspect
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def with_server(condition: Callable[..., T], server: object) -> Callable[[], T]:
    """A condition may take the server, or nothing."""
    try:
        takes_server = bool(inspect.signature(condition).parameters)
    except ValueError:  # of some that are written in C nobody knows
        takes_server = False
    return (lambda: condition(server)) if takes_server else condition


def described(condition: Callable[..., object]) -> str:
    """Its name, or the line on which a lambda is written."""
    name = getattr(condition, "__name__", "")
    if name and name != "<lambda>":
        return name
    try:
        lines, _ = inspect.getsourcelines(condition)
    except (OSError, TypeError):
        return "the condition"
    return lines[0].strip()
