"""The follower keeps the views true to a store that other nodes write too, and that may lose its
past.

Theory of operation. Signals can be lost, the journal cannot, so whatever it tells is read. That the
store has stepped back (a fail-over that lost data, a backup that was restored) is noticed in three
ways: entries that were read from the journal are gone; a scope is read with a lower revision than
before; or a commit that this node knows of never appears in the journal, in which case its scope is
read again. It is then followed: all views are read anew, and a scope of which instances may have
been shown a lost document begins anew under another tag.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.core.transitions import HOUSEKEEPING
from fairwarning.engine.change_feed import (
    OUTAGE_PAUSE_S,
    PAGE_ENTRIES_MAX,
    RECHECK_S,
    Feed,
    pause,
)
from fairwarning.engine.document_views import Views
from fairwarning.engine.journal_reader import JournalReader, Mark, PastChanged
from fairwarning.engine.protocols import Entry, Receipt, Store, StoreDown
from fairwarning.engine.rereads import answer
from fairwarning.engine.step_back import StepBack

REMEMBERED_AT_START = 1_000
REMEMBERED_MAX = 10_000
CHECK_EVERY_S = 1.0
READ_AGAIN_MAX = 200
LOOKS_MAX = 4
"""How often a scope is read again for a revision that the journal does not show."""

_log = logging.getLogger(__name__)


class UnconfirmedRevision(NamedTuple):
    revision: int
    looks: int = 0
    """How often its scope was read again because of it."""


_NOTHING = UnconfirmedRevision(-1)


class UnconfirmedRevisions:
    """The revisions that this node was told of and has not met in the journal yet."""

    def __init__(self) -> None:
        self._new: dict[ScopeId, UnconfirmedRevision] = {}
        self._old: dict[ScopeId, UnconfirmedRevision] = {}
        """Those that were there at the last look."""
        self._own: dict[ScopeId, dict[int, Instant]] = {}
        """When this node has committed a revision: that one must have a line in the journal."""
        self._met: dict[ScopeId, tuple[int, Instant]] = {}
        """The newest revision of each scope that the journal has shown, and its time."""

    def note(self, scope_id: ScopeId, revision: int) -> None:
        if revision > self._new.get(scope_id, _NOTHING).revision:
            self._new[scope_id] = UnconfirmedRevision(revision)

    def may_expect(self, scope_id: ScopeId, revision: int, at_ms: Instant) -> bool:
        """Note a commit of this node; its reply may be later than its line in the journal.

        False if the journal has shown another commit as this revision.
        """
        met, met_ms = self._met.get(scope_id, (0, at_ms))
        if revision > met:
            self._own.setdefault(scope_id, {})[revision] = at_ms
            self.note(scope_id, revision)
        return revision != met or at_ms == met_ms

    def is_met_by(self, entry: Entry) -> bool:
        """False if the journal has passed over a commit of this node, or has another instead."""
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
        """The revisions that were already there when this was called the last time."""
        # First what this node has committed itself: other news is mostly only late.
        by_weight = sorted(self._old.items(), key=lambda each: each[0] not in self._own)
        taken = dict(by_weight[:READ_AGAIN_MAX])
        left = dict(by_weight[READ_AGAIN_MAX:])
        # Not for ever: a renewed lease has no line in the journal.
        again = {
            scope_id: heard._replace(looks=heard.looks + 1)
            for scope_id, heard in taken.items()
            if heard.looks + 1 < LOOKS_MAX
        }
        self._old, self._new = left | self._new, again
        return list(taken)

    def clear(self) -> list[ScopeId]:
        """Forget all revisions."""
        left = sorted({*self._new, *self._old, *self._own})
        self._new, self._old, self._own, self._met = {}, {}, {}, {}
        return left


class Follower:
    """The follower of a node on a shared store."""

    def __init__(
        self, store: Store, feed: Feed, views: Views, on_step_back: Callable[[], None]
    ) -> None:
        self._feed = feed
        self._views = views
        self._on_step_back = on_step_back
        self._reader = JournalReader(store, marks_max=REMEMBERED_MAX)
        self._unconfirmed = UnconfirmedRevisions()
        self._waiting: list[asyncio.Future[None]] = []
        """Those who want to know whether the store has stepped back."""
        self._wake: asyncio.Event | None = None
        self._looked_s = self._proved_s = float("-inf")
        self._true_s = float("-inf")
        """When a look began that came to the end of the journal."""
        self.step_backs = 0
        views.on_news = self._unconfirmed.note
        views.on_contradiction = self._ring
        feed.find_loss = partial(self.check, at_once=True)

    async def begin(self) -> None:
        """Begin at the end of the journal, before the views are loaded, so that no change falls in
        between.
        """
        self._true_s = _now_s()
        await self._reader.begin_at_end(REMEMBERED_AT_START)

    @property
    def lag_s(self) -> float:
        return _now_s() - min(self._true_s, self._views.behind_since_s)

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._run(), name="follower")

    def expect(self, receipt: Receipt) -> None:
        """Note a commit of this node, whose lines the journal must show."""
        if any(not isinstance(each, HOUSEKEEPING) for each in receipt.transitions):
            scope = receipt.scope
            if not self._unconfirmed.may_expect(scope.id, scope.revision, receipt.at_ms):
                self._views.contradicted.add(scope.id)
                self._ring()

    async def check(self, *, at_once: bool = False) -> None:
        """Look whether the store has stepped back, unless that was done a moment ago.

        `at_once` looks also then. Returns when the scopes that are known to be concerned are shown
        as they are stored. Raises StoreDown.
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
        """Do a round, and return how long to wait for the next one unless somebody rings."""
        try:
            has_more = await self._round()
        except StoreDown:
            return OUTAGE_PAUSE_S
        except Exception:
            # Whatever it is, the views must not be left alone for it.
            _log.exception("following the store stumbled and goes on")
            return OUTAGE_PAUSE_S
        return 0 if has_more else RECHECK_S

    async def _round(self) -> bool:
        """Read what is new. Returns whether there may be more to read at once."""
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
            self._true_s = self._looked_s
        if self._views.contradicted:
            await self._follow(self._reader.last, ())
            return True
        return bool(page)

    async def _prove(self) -> None:
        """Look up what the journal has not shown although all of it is read."""
        if _now_s() - self._proved_s >= CHECK_EVERY_S:
            self._proved_s = _now_s()
            await self._views.refresh(*self._unconfirmed.overdue())

    async def _follow(self, common: Mark | None, lost: tuple[Mark, ...]) -> None:
        # Where something new is known to wait comes first, then what instances ask for.
        changed = sorted(self._views.contradicted)
        # What was not met in the journal may be lost too, and written anew under its number.
        others = {*self._unconfirmed.clear(), *(each.scope_id for each in lost if each.scope_id)}
        others.difference_update(changed)
        asked_first = sorted(others, key=lambda each: (not self._views.is_asked(each), each))
        concerned = [*changed, *asked_first]
        # First of all, so that nothing that happens from now on is missed.
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
