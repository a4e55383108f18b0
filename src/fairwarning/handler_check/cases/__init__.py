"""All stories, in the order in which they are told."""

from fairwarning.handler_check.cases import (
    approvals,
    bad_responses,
    endings,
    resources,
    timing,
)
from fairwarning.handler_check.cases.registry import BOOK, Story

__all__ = ["AUDITION", "STORIES", "Story"]

_CHAPTERS = (resources, timing, endings, approvals, bad_responses)
STORIES = {
    name: each
    for chapter in _CHAPTERS
    for name, each in BOOK.items()
    if each.play.__module__ == chapter.__name__
}
AUDITION = Story(
    name="audition",
    title="the handler is started",
    why="a handler that does not ask cannot be judged",
    play=lambda _: None,
)
"""Before all others: does it ask at all?"""
