"""Lists, a page at a time: `value`, and `nextLink` as long as there is more. Pure."""

import re
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from fairwarning.control.arm.call import ArmCall, Json
from fairwarning.control.arm.filtering import top_of

PAGE_ITEMS_MAX = 500
_AFTER = "$skiptoken"
Place = tuple[list[tuple[int, str]], str]
"""In the order of a list."""


def page(call: ArmCall, items: Iterable[Json]) -> Json:
    """A page goes on after the id that ended the one before, so that no change between the two
    makes a reader miss what was there all the time. Raises ArmError."""
    after = start_of(call)
    ordered = sorted((place_of(each["id"]), at, each) for at, each in enumerate(items))
    rest = [each for place, _, each in ordered if place > after]
    top = page_items(call)
    found: Json = {"value": rest[:top]}
    if len(rest) > top:
        found["nextLink"] = _next_link(call, rest[top - 1]["id"])
    return found


def start_of(call: ArmCall) -> Place:
    """A page has what comes after this."""
    return place_of(call.query.get(_AFTER, ""))


def place_of(id: str) -> Place:
    """By name, and numbers by size: 2 comes before 10, and 1 and 01 are two all the same."""
    parts = re.split(r"([0-9]+)", id.lower())
    return [_size(part) if at % 2 else (0, part) for at, part in enumerate(parts)], id.lower()


def _size(digits: str) -> tuple[int, str]:
    """Without making a number of it: a token may have any length."""
    said = digits.lstrip("0")
    return len(said), said


def page_items(call: ArmCall) -> int:
    """How many items a page of this request has at most."""
    asked = call.query.get("$top")
    return PAGE_ITEMS_MAX if asked is None else min(top_of(asked), PAGE_ITEMS_MAX)


def _next_link(call: ArmCall, last: str) -> str:
    path = quote(f"{call.path.id}/{call.path.tail}")
    return f"{call.base_url}{path}?{urlencode({**call.query, _AFTER: last})}"
