"""Converts the arguments that a test gives. An error for a wrong word lists the right words."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from fairwarning.common.durations import parse_duration_ms
from fairwarning.core.model import EventType

E = TypeVar("E", bound=StrEnum)
Span = str | int | float | timedelta
"""A duration, as text such as `"15m"`, as seconds, or as a timedelta."""


def type_of(word: str) -> EventType:
    """Return the event type that a word names, without regard to case.

    Raises `ValueError` for an unknown type, and for `Power`, which no instance sees.
    """
    found = one_of(EventType, word, "type of event", leaves_out=EventType.POWER)
    assert isinstance(found, EventType)
    return found


def one_of(kind: type[E], word: str, what: str, *, leaves_out: E | None = None) -> E:
    known = [each for each in kind if each is not leaves_out]
    for each in known:
        if each.lower() == word.lower():
            return each
    raise ValueError(f"{word!r} is no {what}; use one of {', '.join(known)}")


def span_ms(span: Span) -> int:
    if isinstance(span, timedelta):
        return round(span.total_seconds() * 1000)
    if isinstance(span, str):
        found = parse_duration_ms(span)
        if found is None:
            raise ValueError(f"{span!r} is no duration; write one like '15m', or seconds")
        return found
    return round(span * 1000)


T = TypeVar("T")


def with_server(condition: Callable[..., T], server: object) -> Callable[[], T]:
    """Return a condition without parameters. It passes `server` to one that takes a parameter."""
    try:
        takes_server = bool(inspect.signature(condition).parameters)
    except ValueError:  # some functions in C have no signature
        takes_server = False
    return (lambda: condition(server)) if takes_server else condition


def described(condition: Callable[..., object]) -> str:
    """Return the name of a condition, or the source line if it is a lambda."""
    name = getattr(condition, "__name__", "")
    if name and name != "<lambda>":
        return name
    try:
        lines, _ = inspect.getsourcelines(condition)
    except (OSError, TypeError):
        return "the condition"
    return lines[0].strip()
