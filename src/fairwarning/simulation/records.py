"""Records the requests of callers in a world, the answers to them, and every document."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import Command
from fairwarning.core.document import render
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import Entry, Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRequest:
    scope_id: ScopeId
    command: Command
    by: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerAnswer:
    """An answer to a caller. It must stay true for ever."""

    request: CallerRequest
    receipt: Receipt | None
    refused: Refused | None


def parts_of(tag: str) -> tuple[Instant, int]:
    """Returns the activation and the incarnation of a tag."""
    incarnation, activated, *_ = tag.split("-")
    return Instant(int(activated, 16)), int(incarnation)


class Documents:
    """Every document that a scope has ever had, even if the store was set back since."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[ScopeId, Instant, int], set[bytes]] = {}
        self._order: dict[tuple[ScopeId, tuple[Instant, int], bytes], tuple[int, int]] = {}
        """For each document, how often the store was set back before, and its number."""

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
        """Returns whether the first document is older and the store was not set back since."""
        first = self._order.get((scope_id, parts_of(one[0]), one[1]))
        second = self._order.get((scope_id, parts_of(other[0]), other[1]))
        if first is None or second is None:
            return False
        return first[0] == second[0] and first < second


class FeedReader:
    """A reader of the change feed that records what it gets, from some position on."""

    def __init__(self, node: str, changes: AsyncGenerator[Entry, None], *, begin: int) -> None:
        self.node = node
        self.begin = begin
        """How many journal entries there are before the first one that the reader must get."""
        self.heard: list[Entry] = []
        self.is_over = False
        self._changes = changes
        self._task = asyncio.create_task(self._run(), name=f"feed reader of {node}")

    async def _run(self) -> None:
        async for entry in self._changes:
            self.heard.append(entry)

    def broken(self) -> BaseException | None:
        """Returns the error that ended the feed, or None. A feed must not end by itself."""
        if self.is_over or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception() or AssertionError("the change feed ended")

    def stop(self) -> None:
        """Marks the reader as over, because its node is dead."""
        self.is_over = True

    def leave(self) -> None:
        self.is_over = True
        self._task.cancel()


class Broken(AssertionError):
    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise


def demand(promise: str, holds: bool, what: Callable[[], str]) -> None:
    if not holds:
        raise Broken(promise, what())
