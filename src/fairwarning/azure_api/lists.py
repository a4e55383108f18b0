"""Lists, a page at a time: `value`, and `nextLink` as long as there is more. Pure."""

import asyncio
import heapq
import re
from collections.abc import Collection, Iterable
from urllib.parse import quote, urlencode

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import ArmCall, Json, Reply

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


# A list of resources as an answer, a page at a time.
SLICE = 200
"""So many resources are looked at before others have their turn."""


async def listed(call: ArmCall, resources: Iterable[Json]) -> Reply:
    """Raises ArmError."""
    after, most = start_of(call), page_items(call) + 1
    found = []
    for number, each in enumerate(resources):
        place = place_of(each["id"])
        if place > after:
            found.append((place, number, each))
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
    nearest = heapq.nsmallest(most, found)
    return Reply(200, page(call, [each for _, _, each in nearest]))


# `$filter` and `$top`, as far as lists of groups and resources know them. Pure.
_ONE = r"(\w+)\s+eq\s+'((?:[^']|'')*)'"
_EACH = re.compile(_ONE, re.IGNORECASE)
_ALL = re.compile(rf"\s*{_ONE}(?:\s+and\s+{_ONE})*\s*", re.IGNORECASE)


def conditions(call: ArmCall, known: Collection[str]) -> dict[str, str]:
    """`tagName eq 'a' and tagValue eq 'b'` by name in lower case. Raises ArmError.

    A filter that is not understood is refused: all that there is would look like its result.
    """
    text = call.query.get("$filter", "")
    if not text:
        return {}
    pairs = _EACH.findall(text)
    found = {name.lower(): value.replace("''", "'") for name, value in pairs}
    is_known = found.keys() <= {name.lower() for name in known} and len(found) == len(pairs)
    if not _ALL.fullmatch(text) or not is_known:
        examples = " and ".join(f"{name} eq 'x'" for name in known)
        raise ArmError(
            400,
            "InvalidFilterInQueryString",
            f"Invalid $filter '{text[:200]}' specified in the query string; write {examples}, or "
            "some of it.",
        )
    return found


def has_tag(tags: Json, wanted: dict[str, str]) -> bool:
    """As `tagName` and `tagValue` say; names of tags have no case."""
    name, value = wanted.get("tagname"), wanted.get("tagvalue")
    if name is None and value is None:
        return True
    return any(
        (name is None or key.lower() == name.lower()) and (value is None or text == value)
        for key, text in tags.items()
    )


def first(call: ArmCall, rows: Iterable[Json]) -> list[Json]:
    """As many as `$top` says, in order of id. Raises ArmError."""
    ordered = sorted(rows, key=lambda row: str(row["id"]).lower())
    top = call.query.get("$top")
    return ordered if top is None else ordered[: top_of(top)]


def top_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise ArmError(
            400,
            "InvalidTopInQueryString",
            f"Invalid $top '{text[:40]}' specified in the query string; write a number from 1 on.",
        )
    return int(text)
