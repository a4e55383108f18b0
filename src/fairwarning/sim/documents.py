"""Every document that a scope has ever had. This memory never steps back."""

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.document import render
from fairwarning.core.instants import Instant
from fairwarning.core.model import Scope, ScopeId


def parts_of(tag: str) -> tuple[Instant, int]:
    """The activation and the incarnation that a tag speaks of."""
    incarnation, activated, *_ = tag.split("-")
    return Instant(int(activated, 16)), int(incarnation)


class Documents:
    def __init__(self) -> None:
        self._bodies: dict[tuple[ScopeId, Instant, int], set[bytes]] = {}
        self._order: dict[tuple[ScopeId, tuple[Instant, int], bytes], tuple[int, int]] = {}
        """When each came: how often the store had stepped back by then, and which it was."""

    def note(self, scope: Scope, past: int) -> None:
        if scope.activated_ms is None:
            return
        body = render(scope, NEWEST)
        parts = (scope.activated_ms, scope.incarnation)
        self._bodies.setdefault((scope.id, *parts), set()).add(body)
        key = (scope.id, parts, body)
        if self._order.get(key, (-1, 0))[0] != past:
            self._order[key] = (past, len(self._order))

    def were_there(self, scope_id: ScopeId, activated: Instant, incarnation: int) -> set[bytes]:
        return self._bodies.get((scope_id, activated, incarnation), set())

    def is_older(self, scope_id: ScopeId, one: tuple[str, bytes], other: tuple[str, bytes]) -> bool:
        """Of two documents with their tags: did both come in one past, the first of them first?"""
        first = self._order.get((scope_id, parts_of(one[0]), one[1]))
        second = self._order.get((scope_id, parts_of(other[0]), other[1]))
        if first is None or second is None:
            return False
        return first[0] == second[0] and first < second
