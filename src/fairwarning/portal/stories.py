"""The stories that come with the program, read once."""

from functools import cache
from typing import NamedTuple

from fairwarning.scenarios import library
from fairwarning.scenarios.instance_mapping import cast_of
from fairwarning.scenarios.model import Scenario
from fairwarning.scenarios.parse import read_scenario


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
