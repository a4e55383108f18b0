"""`reference`: what other resources are like, which is known only once they exist."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairwarning.control.arm.call import Json
from fairwarning.control.arm.templates.faults import Fault, shown
from fairwarning.control.arm.templates.functions.signature import Function, takes
from fairwarning.control.arm.templates.values import Kind, Value


class Unread(Exception):
    """Nobody has read this resource yet; it has been noted."""


class Wanted(NamedTuple):
    id: str
    api_version: str
    """Empty: whatever is the newest."""


class References:
    """Of one walk. `read` has what is known, by id in lower case."""

    def __init__(self, read: Mapping[str, Json], id_of: Callable[[str], Wanted | None]) -> None:
        self._read = read
        self._id_of = id_of
        self.wanted: dict[str, Wanted] = {}

    def functions(self) -> dict[str, Function]:
        return {"reference": takes(self._reference, Kind.TEXT, Kind.TEXT, Kind.TEXT, least=1)}

    def _reference(self, name: str, api_version: str = "", whole: str = "") -> Value:
        wanted = self._id_of(name)
        if wanted is None and not name.startswith("/"):
            raise Fault(
                f"The template reference '{shown(name)}' is not valid: could not find template "
                "resource or resource copy with this name"
            )
        wanted = wanted or Wanted(name, "")
        found = self._read.get(wanted.id.lower())
        if found is None:
            self.wanted[wanted.id.lower()] = Wanted(wanted.id, api_version or wanted.api_version)
            raise Unread
        value: Value = found if whole.lower() == "full" else found.get("properties", {})
        return value
