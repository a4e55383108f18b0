"""The follower keeps the views equal to a store that other nodes write too, and that may lose a
part of its past.

Theory of operation. Signals can be lost but journal entries cannot, so the follower reads the
journal. It notices in three ways that the store has stepped back (a fail-over that lost data, or a
restored backup): entries that were read are gone; a scope has a lower revision than before; or a
commit of this node never appears in the journal, and a read of its scope shows that it is lost.
Then all views are read again. If instances may have seen a lost document of a scope, that scope
begins a new activation with another tag.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.core.transitions import HOUSEKEEPING
from fairwarning.engine.change_feed import OUTAGE_PAUSE_S, PAGE_ENTRIES_MAX, RECHECK_S, Feed, pause
from fairwarning.engine.document_views import Views
from fairwarning.engine.journal_reader import JournalReader, Mark, PastChanged
from fairwarning.engine.protocols import Entry, Receipt, Store, StoreDown
from fairwarning.engine.rereads import answer
from fairwarning.engine.step_back import StepBack

REMEMBERED_AT_START = 1_000  # Enough to notice a step back right after the start.
REMEMBERED_MAX = 10_000  # Enough to find what is left after a long step back.
CHECK_EVERY_S = 1.0  # Many callers may ask for the same check at once.
READ_AGAIN_MAX = 200  # One look must not keep the store busy for long.
LOOKS_MAX = 4
"""How often a scope is read for a revision that the journal lacks: it may have no entry."""

_log = logging.getLogger(__name__)


class UnconfirmedRevision(NamedTuple):
    revision: int
    looks: int = 0
    """How often the scope was read again because of this revision."""


_NOTHING = UnconfirmedRevision(-1)


class UnconfirmedRevisions:
    """The revisions that this node knows of and has not read in the journal yet."""

    def __init__(self) -> None:
        self._new: dict[ScopeId, UnconfirmedRevision] = {}
        self._old: dict[ScopeId, UnconfirmedRevision] = {}
        """The revisions that were already known at the last call of `overdue`."""
        self._own: dict[ScopeId, dict[int, Instant]] = {}
        """The time of each commit of this node. Each must have an entry in the journal."""
        self._met: dict[ScopeId, tuple[int, Instant]] = {}
        """The newest revision of each scope that the journal has shown, and its time."""

    def note(self, scope_id: ScopeId, revision: int) -> None:
        if revision > self._new.get(scope_id, _NOTHING).revision:
            self._new[scope_id] = UnconfirmedRevision(revision)

    def may_expect(self, scope_id: ScopeId, revision: int, at_ms: Instant) -> bool:
        """Note a commit of this node. Returns False if the journal has another at its revision."""
        met, met_ms = self._met.get(scope_id, (0, at_ms))
        if revision > met:
            self._own.setdefault(scope_id, {})[revision] = at_ms
            self.note(scope_id, revision)
        return revision != met or at_ms == met_ms

    def is_met_by(self, entry: Entry) -> bool:
        """Note that an entry was read. Returns False if a commit of this node is missing."""
        self._met[entry.scope_id] = (entry.revision, entry.at_ms)
        for told in (self._new, self._old):
            if entry.revision >= told.get(entry.scope_id, _NOTHING).revision:
                told.pop(entry.scope_id, None)
        own = self._own.get(entry.scope_id)
        if own is None:
            return True
        is_right = own.pop(entry.revision, entry.at_ms) == entry.at_ms
        is_complete = all(revision > entry.revision for revision in own)
        if not own:
            del self._own[entry.scope_id]
        return is_right and is_complete

    def overdue(self) -> list[ScopeId]:
        """Return the scopes to read again: their revisions were missing at the last call, too."""
        # Commits of this node come first; other revisions are mostly just late.
        by_weight = sorted(self._old.items(), key=lambda each: each[0] not in self._own)
        taken = dict(by_weight[:READ_AGAIN_MAX])
        left = dict(by_weight[READ_AGAIN_MAX:])
        # Stop after some tries, because a renewed lease has no entry in the journal.
        again = {
            scope_id: heard._replace(looks=heard.looks + 1)
            for scope_id, heard in taken.items()
            if heard.looks + 1 < LOOKS_MAX
        }
        self._old, self._new = left | self._new, again
        return list(taken)

    def clear(self) -> list[ScopeId]:
        """Forget all revisions. Returns the scopes of revisions that the journal does not have."""
        left = sorted({*self._new, *self._old, *self._own})
        self._new, self._old, self._own, self._met = {}, {}, {}, {}
        return left


class Follower:
    """The follower of a node whose store is shared with other nodes."""

    def __init__(
        self, store: Store, feed: Feed, views: Views, on_step_back: Callable[[], None]
    ) -> None:
        self._feed = feed
        self._views = views
        self._on_step_back = on_step_back
        self._reader = JournalReader(store, marks_max=REMEMBERED_MAX)
        self._unconfirmed = UnconfirmedRevisions()
        self._waiting: list[asyncio.Future[None]] = []
        """The callers that wait to know whether the store has stepped back."""
        self._wake: asyncio.Event | None = None
        self._looked_s = self._proved_s = float("-inf")
        self._true_s = float("-inf")
        """The time up to which the views are known to be complete, by the event loop's clock."""
        self.step_backs = 0
        views.on_news = self._unconfirmed.note
        views.on_contradiction = self._ring
        feed.find_loss = partial(self.check, at_once=True)

    async def begin(self) -> None:
        """Begin at the end of the journal. Call this before the views are loaded."""
        self._true_s = _now_s()
        await self._reader.begin_at_end(REMEMBERED_AT_START)

    @property
    def age_s(self) -> float:
        """How many seconds ago the whole journal was read. Scopes that cannot be read for a reason
        other than an outage are ignored here.
        """
        return _now_s() - self._true_s

    @property
    def lag_s(self) -> float:
        return _now_s() - min(self._true_s, self._views.behind_since_s)

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._run(), name="follower")

    def expect(self, receipt: Receipt) -> None:
        """Note a commit of this node. Its entries must appear in the journal."""
        if any(not isinstance(each, HOUSEKEEPING) for each in receipt.transitions):
            scope = receipt.scope
            if not self._unconfirmed.may_expect(scope.id, scope.revision, receipt.at_ms):
                self._views.contradicted.add(scope.id)
                self._ring()

    async def check(self, *, at_once: bool = False) -> None:
        """Check whether the store has stepped back, unless this was done a moment ago.

        With `at_once` it always checks. Returns when the scopes that are known to be affected are
        shown as they are stored. Raises StoreDown.
        """
        if self._wake is None:
            return
        is_recent = _now_s() - self._looked_s < CHECK_EVERY_S
        may_wait = (is_recent or self._views.is_reloading) and not self._views.contradicted
        if may_wait and not at_once:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wake.set()
        await done

    def _ring(self) -> None:
        if self._wake is not None:
            self._wake.set()

    async def _run(self) -> None:
        with self._feed.waking() as wake:
            self._wake = wake
            try:
                while True:
                    wake.clear()
                    await pause(wake, await self._safe_round())
            finally:
                self._wake = None
                answer(self._waiting)

    async def _safe_round(self) -> float:
        """Do a round. Returns how many seconds to wait for the next one, unless somebody rings."""
        try:
            has_more = await self._round()
        except StoreDown:
            return OUTAGE_PAUSE_S
        except Exception:
            # The follower must go on after any error, or the views would become old.
            _log.exception("following the store stumbled and goes on")
            return OUTAGE_PAUSE_S
        return 0 if has_more else RECHECK_S

    async def _round(self) -> bool:
        """Read the new entries. Returns whether there may be more to read at once."""
        waiting, self._waiting = self._waiting, []
        began_s = _now_s()
        try:
            has_more = await self._look()
        except Exception as error:
            answer(waiting, error)
            raise
        else:
            self._looked_s = began_s
        finally:
            answer(waiting)
        if self._views.is_reloading:
            await self._views.reload()
        return has_more

    async def _look(self) -> bool:
        try:
            page = await self._reader.page(PAGE_ENTRIES_MAX)
        except PastChanged as change:
            await self._follow(change.common, change.lost)
            return True
        for entry in page:
            if not self._unconfirmed.is_met_by(entry):
                self._views.contradicted.add(entry.scope_id)
            self._views.on_entry(entry)
            self._reader.passed(entry)
        if not page:
            await self._prove()
        if len(page) < PAGE_ENTRIES_MAX and not self._views.is_reloading:
            # The first look has none before it. Then the views are as old as the start.
            self._true_s = max(self._true_s, self._looked_s)
        if self._views.contradicted:
            await self._follow(self._reader.last, ())
            return True
        return bool(page)

    async def _prove(self) -> None:
        """Read the scopes again whose revisions are missing although the whole journal was read."""
        if _now_s() - self._proved_s >= CHECK_EVERY_S:
            self._proved_s = _now_s()
            await self._views.refresh(*self._unconfirmed.overdue())

    async def _follow(self, common: Mark | None, lost: tuple[Mark, ...]) -> None:
        # Scopes that are known to differ come first, then scopes that instances ask for.
        changed = sorted(self._views.contradicted)
        # Revisions that were not in the journal may be lost too, and their numbers used again.
        others = {*self._unconfirmed.clear(), *(each.scope_id for each in lost if each.scope_id)}
        others.difference_update(changed)
        asked_first = sorted(others, key=lambda each: (not self._views.is_asked(each), each))
        concerned = [*changed, *asked_first]
        # Before anything else, so that no later change is missed.
        if common is None:
            await self._reader.begin_at_end(REMEMBERED_AT_START)
        else:
            self._reader.go_back(common)
            self._feed.note_branch(common, lost)
        self.step_backs += 1
        _log.error(
            "the store has stepped back: of what this node knew, %d lines of the journal are gone, "
            "about %d scopes; all scopes are read anew",
            len(lost),
            len(concerned),
        )
        common_ms = None if common is None else common.at_ms
        self._views.begin_era(StepBack(common_ms=common_ms, lost=frozenset(concerned)))
        self._on_step_back()
        await self._views.refresh(*concerned)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
