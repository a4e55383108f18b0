"""`$filter` and `$top`, as far as lists of groups and resources know them. Pure."""

import re
from collections.abc import Collection, Iterable

from fairwarning.control.arm.call import ArmCall, Json
from fairwarning.control.arm.errors import ArmError

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
