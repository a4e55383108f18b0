"""Renders lists of resources page by page, with `$filter`, `$top` and `nextLink`."""

import asyncio
import heapq
import re
from collections.abc import Collection, Iterable
from urllib.parse import quote, urlencode

from fairwarning.azure_api.errors import ArmError, invalid_parameter
from fairwarning.azure_api.request import ArmCall, Json, Reply

PAGE_ITEMS_MAX = 500
SLICE = 200
"""After each slice of this many resources, the event loop can serve other requests."""
_AFTER = "$skiptoken"
_CONDITION = r"(\w+)\s+eq\s+'((?:[^']|'')*)'"
_CONDITIONS = re.compile(_CONDITION, re.IGNORECASE)
_FILTER = re.compile(rf"\s*{_CONDITION}(?:\s+and\s+{_CONDITION})*\s*", re.IGNORECASE)
Place = tuple[list[tuple[int, str]], str]
"""The sort key of an id in a list."""


def page_json(call: ArmCall, items: Iterable[Json]) -> Json:
    """Renders the page that the call asks for. Raises ArmError.

    A page starts after the last id of the page before, so changes between two requests never make
    a reader miss a resource that was there all the time.
    """
    after = start_of(call)
    ordered = sorted((place_of(each["id"]), at, each) for at, each in enumerate(items))
    rest = [each for place, _, each in ordered if place > after]
    top = page_items(call)
    found: Json = {"value": rest[:top]}
    if len(rest) > top:
        found["nextLink"] = _next_link(call, rest[top - 1]["id"])
    return found


def start_of(call: ArmCall) -> Place:
    """Returns the sort key of the last item of the page before. The page starts after it."""
    return place_of(call.query.get(_AFTER, ""))


def place_of(id: str) -> Place:
    """Returns the sort key of an id.

    Numbers inside ids are sorted by value, so `vm2` comes before `vm10`. `vm1` and `vm01` have
    different keys.
    """
    parts = re.split(r"([0-9]+)", id.lower())
    return [_size(part) if at % 2 else (0, part) for at, part in enumerate(parts)], id.lower()


def _size(digits: str) -> tuple[int, str]:
    """Returns a sort key for digits.

    They are not converted to a number, because a page token may contain too many digits.
    """
    significant = digits.lstrip("0")
    return len(significant), significant


def page_items(call: ArmCall) -> int:
    """Returns the maximum number of items on a page of this request."""
    top = call.query.get("$top")
    return PAGE_ITEMS_MAX if top is None else min(top_of(top), PAGE_ITEMS_MAX)


def _next_link(call: ArmCall, last: str) -> str:
    path = quote(f"{call.path.id}/{call.path.tail}")
    return f"{call.base_url}{path}?{urlencode({**call.query, _AFTER: last})}"


async def list_reply(call: ArmCall, resources: Iterable[Json]) -> Reply:
    """Replies with the page of the resources that the call asks for. Raises ArmError."""
    after, most = start_of(call), page_items(call) + 1
    found = []
    for number, each in enumerate(resources):
        place = place_of(each["id"])
        if place > after:
            found.append((place, number, each))
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
    nearest = heapq.nsmallest(most, found)
    return Reply(200, page_json(call, [each for _, _, each in nearest]))


def read_filter(call: ArmCall, known: Collection[str]) -> dict[str, str]:
    """Reads a `$filter` like `tagName eq 'a' and tagValue eq 'b'`.

    Returns the value of each name, with the names in lower case. Raises ArmError if the filter is
    not valid or has a name that is not in `known`.
    """
    text = call.query.get("$filter", "")
    if not text:
        return {}
    pairs = _CONDITIONS.findall(text)
    found = {name.lower(): value.replace("''", "'") for name, value in pairs}
    is_known = found.keys() <= {name.lower() for name in known} and len(found) == len(pairs)
    if not _FILTER.fullmatch(text) or not is_known:
        examples = " and ".join(f"{name} eq 'x'" for name in known)
        raise ArmError(
            400,
            "InvalidFilterInQueryString",
            f"Invalid $filter '{text[:200]}' specified in the query string; write {examples}, or "
            "some of it.",
        )
    return found


def has_tag(tags: Json, wanted: dict[str, str]) -> bool:
    """Returns whether a tag matches `tagname` and `tagvalue` of `wanted`, as far as they are given.

    Names of tags are compared without regard to case.
    """
    name, value = wanted.get("tagname"), wanted.get("tagvalue")
    if name is None and value is None:
        return True
    return any(
        (name is None or key.lower() == name.lower()) and (value is None or text == value)
        for key, text in tags.items()
    )


def read_expand(call: ArmCall, *allowed: str) -> set[str]:
    """Returns the words of `$expand`, in lower case. Raises ArmError if one is not in `allowed`."""
    words = [each.strip() for each in call.query.get("$expand", "").split(",") if each.strip()]
    for word in words:
        if word.lower() not in [each.lower() for each in allowed]:
            raise invalid_parameter(
                "$expand",
                f"The value '{word[:40]}' of parameter '$expand' is not allowed. Allowed values "
                f"are: {', '.join(allowed)}.",
            )
    return {word.lower() for word in words}


def first_rows(call: ArmCall, rows: Iterable[Json]) -> list[Json]:
    """Returns the first `$top` rows, or all rows without `$top`, sorted by id. Raises ArmError."""
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
