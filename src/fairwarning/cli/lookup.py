"""From what a person typed to a name that the API knows."""

from typing import TYPE_CHECKING

from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import several

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

UNFINISHED = ("scheduled", "started")
PREFIX_MIN = 4
_ID_LENGTH = 36
_NEWEST = 200


def find_event_id(api: "Api", text: str) -> str:
    """The whole id of an event that may be abbreviated to a prefix that only one has.

    An id that is exactly this comes first: an event may have been given a short one. Then
    come unfinished events, then the newest; what fits several is refused and never guessed.
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
