"""What the server has written into its history since one last looked."""

from collections.abc import Collection

from fairwarning.rehearsal.model import Json
from fairwarning.rehearsal.operator import Operator

PAGE = 100
PAGES_MAX = 50
_INTERNAL = frozenset({"HandedOver", "LeaseRenewed"})
"""Housekeeping between nodes, which no story is about."""


class News:
    def __init__(self, operator: Operator, scopes: Collection[str]) -> None:
        """Of these scopes, and of what is outside all scopes, such as faults and rollouts."""
        self._operator = operator
        self._scopes = {*scopes, ""}
        found = operator.get("history", limit=1)["entries"]
        self._last: str | None = found[0]["position"] if found else None

    def read(self) -> list[Json]:
        """Each entry once, oldest first."""
        found: list[Json] = []
        after: str | None = None
        for _ in range(PAGES_MAX):
            page = self._operator.get("history", limit=PAGE, after=after)
            fresh = self._until_known(page["entries"])
            found += fresh
            after = page["next"]
            if after is None or len(fresh) < len(page["entries"]):
                break
        if found:
            self._last = found[0]["position"]
        return [each for each in reversed(found) if self._is_told(each)]

    def _until_known(self, entries: list[Json]) -> list[Json]:
        positions = [each["position"] for each in entries]
        if self._last not in positions:
            return entries
        return entries[: positions.index(self._last)]

    def _is_told(self, entry: Json) -> bool:
        return entry["scope"] in self._scopes and entry["kind"] not in _INTERNAL
