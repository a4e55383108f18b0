"""The stories that come with the program, read once."""

from functools import cache
from typing import NamedTuple

from fairwarning.rehearsal import library
from fairwarning.rehearsal.casting import cast_of
from fairwarning.rehearsal.model import Scenario
from fairwarning.rehearsal.reading import read_scenario


class Story(NamedTuple):
    name: str
    scenario: Scenario
    cast: tuple[str, ...]
    """Who plays unless others are chosen."""


@cache
def story_list() -> tuple[Story, ...]:
    found = ((name, read_scenario(library.text(name))) for name in library.names())
    return tuple(Story(name, each, cast_of(each)) for name, each in found)


def story(name: str) -> Story | None:
    return next((each for each in story_list() if each.name == name), None)
