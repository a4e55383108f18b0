"""Finds what a person means by an id, a name, or the beginning of one.

Events, rollouts, tokens, targets of notifications, dead letters and faults are all found here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import several

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

Json = dict[str, Any]
UNFINISHED = ("scheduled", "started")
PREFIX_MIN = 4  # Fewer characters would often fit several.
_ID_LENGTH = 36  # The characters of a GUID.
_NEWEST = 200  # One page; who means an older one gives its whole id.


@dataclass(frozen=True)
class Noun:
    """A kind of thing that people refer to: where the API lists it, and what people call it."""

    path: tuple[str, ...]
    key: str
    """The member of the API's answer that holds the list."""
    word: str
    listed_by: str
    """The command that lists them."""
    is_paged: bool = True
    searched: int | None = None
    """How many are searched at most, the newest first."""


ROLLOUT = Noun(("rollouts",), "rollouts", "rollout", "fairwarning rollout list", searched=_NEWEST)
TOKEN = Noun(("tokens",), "tokens", "token", "fairwarning token list")
TARGET = Noun(
    ("notifications",), "notifications", "target", "fairwarning notification list", is_paged=False
)
DEAD_LETTER = Noun(
    ("notifications", "dead-letters"),
    "deadLetters",
    "dead letter",
    "fairwarning notification dead-letters",
)
FAULT = Noun(("faults",), "faults", "fault", "fairwarning fault list", is_paged=False)
_EVENT = Noun(("events",), "events", "event", "fairwarning events --all")


def with_id(api: "Api", noun: Noun, text: str, act: Callable[[str], Json]) -> Json:
    """Call `act` with the id that `text` means, and return its answer.

    `text` is tried as an exact id first, so that this needs no list. Otherwise the one whose name
    is `text` is meant, or else the one whose id or name begins with it. Raises `Problem` if none
    or several fit.
    """
    try:
        return act(text)
    except Problem as problem:
        if problem.status != 404:
            raise
    listed = (
        api.pages(*noun.path, key=noun.key, limit=noun.searched)
        if noun.is_paged
        else api.get(*noun.path)
    )
    return act(str(_only(noun, listed[noun.key], text)["id"]))


def find_event_id(api: "Api", text: str) -> str:
    """Return the whole id of the event whose id is `text` or begins with it.

    An exact id is tried first, because an event may have a short one. Then the unfinished
    events are searched, then the newest. Raises `Problem` if no event or several fit.
    """
    if len(text) >= _ID_LENGTH:
        return text
    try:
        return str(api.get("events", text)["id"])
    except Problem as problem:
        if problem.status != 404 or len(text) < PREFIX_MIN:
            raise
    for phases, limit in ((UNFINISHED, None), ((), _NEWEST)):
        page = api.pages("events", key="events", limit=limit, phase=phases)
        if fitting(page["events"], text):
            return str(_only(_EVENT, page["events"], text)["id"])
    raise _nothing(_EVENT, text)


def fitting(items: Sequence[Json], text: str) -> list[Json]:
    """Return those with the name `text`, or else those whose id or name begins with `text`."""
    wanted = text.lower()
    named = [each for each in items if str(each.get("name") or "").lower() == wanted]
    if named or len(text) < PREFIX_MIN:
        return named
    return [
        each
        for each in items
        if str(each["id"]).lower().startswith(wanted)
        or str(each.get("name") or "").lower().startswith(wanted)
    ]


def _only(noun: Noun, items: Sequence[Json], text: str) -> Json:
    found = fitting(items, text)
    if not found:
        raise _nothing(noun, text)
    if len(found) > 1:
        ids = several([str(each["id"]) for each in found])
        raise Problem(f"{text!r} fits several {noun.word}s ({ids}); write more of the id")
    return found[0]


def _nothing(noun: Noun, text: str) -> Problem:
    begins = "id" if noun is _EVENT else "id or name"
    hint = f"; give at least {PREFIX_MIN} characters" if len(text) < PREFIX_MIN else ""
    return Problem(
        f"no {noun.word}'s {begins} begins with {text!r}{hint}; see them with `{noun.listed_by}`"
    )
