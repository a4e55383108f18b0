"""Finds the whole id of an event from the beginning that a person typed."""

from typing import TYPE_CHECKING

from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import several

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

UNFINISHED = ("scheduled", "started")
PREFIX_MIN = 4  # Fewer characters would often fit several events.
_ID_LENGTH = 36  # The characters of a GUID.
_NEWEST = 200  # One page; who means an older event gives its whole id.


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
        found = matching([str(event["id"]) for event in page["events"]], text)
        if found is not None:
            return found
    raise Problem(f"no event's id begins with {text!r}; see them with `fairwarning events --all`")


def matching(ids: list[str], prefix: str) -> str | None:
    found = [id for id in ids if id.lower().startswith(prefix.lower())]
    if len(found) > 1:
        raise Problem(f"{prefix!r} fits several events ({several(found)}); write more of the id")
    return found[0] if found else None
