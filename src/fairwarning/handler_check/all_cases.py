"""This module lists all cases that a handler is checked with, in the order of the report."""

from fairwarning.handler_check.cases import (
    approvals,
    bad_responses,
    endings,
    resources,
    restarts,
    timing,
    while_drained,
)
from fairwarning.handler_check.cases.registry import REGISTERED, Case

_MODULES = (resources, timing, endings, restarts, approvals, bad_responses, while_drained)
CASES = {
    name: each
    for module in _MODULES
    for name, each in REGISTERED.items()
    if each.play.__module__ == module.__name__
}
FIRST_POLL = Case(
    name="first-poll",
    title="the handler is started",
    why="a handler that does not ask cannot be judged",
    play=lambda _: None,
)
"""The check before all cases, which only tests that the handler polls."""
