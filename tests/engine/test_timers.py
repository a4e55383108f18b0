"""The ticker: what is due is ticked on time, whatever the store and the signals do meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Due, ScopeBusy, Signal, Store, StoreDown
from fairwarning.engine.timers import (
    BATCH_SCOPES_MAX,
    LEFT_PAUSE_MS,
    OUTAGE_PAUSE_MS,
    RECHECK_MS,
    Ticker,
)

A, B = ScopeId("a"), ScopeId("b")


class Deadlines:
    """The part of a store that a ticker asks. A tick ends the deadline of its scope."""

    def __init__(self, clock: VirtualClock, *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self._clock = clock
        self.left: dict[ScopeId, int] = {}
        """When each scope is due, in milliseconds since the start."""
        self.start = clock.now()
        self.looks: list[int] = []
        self.ticks: list[tuple[str, int]] = []
        self.due_errors: list[Exception] = []
        self.tick_errors: list[Exception] = []
        self.slow: asyncio.Event | None = None
        self.ahead_ms = 0
        """By how much the store's clock is ahead of the node's."""

    @property
    def now(self) -> int:
        return self._clock.now() - self.start

    async def due(self, limit: int) -> Due:
        self.looks.append(self.now)
        found = dict(self.left)
        if self.slow is not None:
            await self.slow.wait()
        if self.due_errors:
            raise self.due_errors.pop(0)
        due = sorted((at, id) for id, at in found.items() if at <= self.now)
        ahead = [at for at in found.values() if at > self.now]
        start = self.start + self.ahead_ms
        return Due(
            now_ms=Instant(self._clock.now() + self.ahead_ms),
            scope_ids=tuple(id for _, id in due[:limit]),
            next_deadline_ms=Instant(start + min(ahead)) if ahead else None,
        )

    async def tick(self, scope_id: ScopeId) -> None:
        if self.tick_errors:
            raise self.tick_errors.pop(0)
        self.ticks.append((scope_id, self.now))
        self.left.pop(scope_id, None)

    def signal(self, scope_id: ScopeId, at: int | None) -> Signal:
        deadline = None if at is None else Instant(self.start + self.ahead_ms + at)
        return Signal(scope_id=scope_id, next_deadline_ms=deadline)


@asynccontextmanager
async def ticking(*, is_shared: bool = False) -> AsyncIterator[tuple[Deadlines, Ticker]]:
    clock = VirtualClock()
    deadlines = Deadlines(clock, is_shared=is_shared)
    store: Store = deadlines  # type: ignore[assignment]
    ticker = Ticker(store, clock, deadlines.tick)
    task = ticker.start()
    await clock.settle()
    try:
        yield deadlines, ticker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_sleeps_until_the_next_deadline_and_does_not_poll() -> None:
    async with ticking() as (store, ticker):
        store.left = {A: 70_000, B: 30_000}
        for id, at in store.left.items():
            ticker.on_signal(store.signal(id, at))
        await store._clock.advance(600_000)
        assert store.ticks == [(B, 30_000), (A, 70_000)]
        assert len(store.looks) <= 8


async def test_a_lost_signal_is_made_good_on_a_shared_store() -> None:
    async with ticking(is_shared=True) as (store, _):
        await store._clock.advance(1_000)
        store.left = {A: 3_000}
        await store._clock.advance(RECHECK_MS)
        assert store.ticks == [(A, RECHECK_MS)]


async def test_it_looks_again_on_a_shared_store_while_it_waits_for_a_later_deadline() -> None:
    async with ticking(is_shared=True) as (store, ticker):
        store.left = {B: 600_000}
        ticker.on_signal(store.signal(B, 600_000))
        await store._clock.settle()
        store.left[A] = 3_000
        await store._clock.advance(RECHECK_MS)
        assert store.ticks == [(A, RECHECK_MS)]


@pytest.mark.parametrize("ahead_ms", [-10_000, 10_000])
async def test_a_shared_store_says_by_its_own_clock_how_long_is_left(ahead_ms: int) -> None:
    async with ticking(is_shared=True) as (store, ticker):
        store.ahead_ms = ahead_ms
        store.left = {A: 3_000}
        ticker.on_signal(store.signal(A, 3_000))
        await store._clock.advance(3_000)
        assert store.ticks == [(A, 3_000)]
        assert len(store.looks) <= 4


async def test_a_deadline_that_is_no_longer_true_only_costs_a_look() -> None:
    """Late, doubled and overtaken signals: what counts is what the store says."""
    async with ticking() as (store, ticker):
        store.left = {A: 50_000}
        for at in (50_000, 10_000, 10_000, None, 90_000, 50_000):
            ticker.on_signal(store.signal(A, at))
            await store._clock.settle()
        assert store.ticks == []
        await store._clock.advance(49_999)
        assert store.ticks == []
        await store._clock.advance(1)
        assert store.ticks == [(A, 50_000)]


async def test_a_signal_that_comes_while_it_looks_is_not_overruled_by_the_older_list() -> None:
    async with ticking() as (store, ticker):
        store.slow = asyncio.Event()
        store.left = {B: 80_000}
        ticker.on_signal(store.signal(B, 80_000))
        while store.looks[-1:] != [0] or len(store.looks) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        # The look that is under way does not know of this one.
        store.left[A] = 5_000
        ticker.on_signal(store.signal(A, 5_000))
        slow, store.slow = store.slow, None
        slow.set()
        await store._clock.advance(5_000)
        assert store.ticks == [(A, 5_000)]


@pytest.mark.parametrize("error", [StoreDown("down"), RuntimeError("a bug")])
@pytest.mark.parametrize("where", ["due", "tick"])
async def test_an_outage_or_a_bug_delays_it_and_ends_nothing(error: Exception, where: str) -> None:
    async with ticking() as (store, ticker):
        store.left = {A: 1_000, B: 1_000}
        ticker.on_signal(store.signal(A, 1_000))
        await store._clock.settle()
        errors = store.due_errors if where == "due" else store.tick_errors
        errors += [error] * 3
        await store._clock.advance(1_000 + 4 * OUTAGE_PAUSE_MS)
        assert {id for id, _ in store.ticks} == {A, B}


async def test_a_store_that_is_away_is_not_asked_all_the_time() -> None:
    """An outage may last for hours, and each try costs a connection and a line of the log."""
    async with ticking() as (store, ticker):
        store.tick_errors += [StoreDown("down")] * 1_000
        store.left = {A: 0}
        ticker.on_signal(store.signal(A, 0))
        await store._clock.advance(10 * OUTAGE_PAUSE_MS)
        assert len(store.looks) <= 12


async def test_a_deadline_that_comes_during_an_outage_is_kept() -> None:
    async with ticking() as (store, ticker):
        store.due_errors += [StoreDown("down")] * 3
        store.left = {A: 60_000}
        ticker.on_signal(store.signal(A, 60_000))
        await store._clock.advance(60_000)
        assert store.ticks == [(A, 60_000)]


async def test_a_signal_while_it_looks_counts_although_it_slept_towards_an_earlier_one() -> None:
    async with ticking() as (store, ticker):
        store.left = {B: 1_000}
        ticker.on_signal(store.signal(B, 1_000))
        await store._clock.settle()
        store.slow, store.left = asyncio.Event(), {}
        advancing = asyncio.create_task(store._clock.advance(1_000))
        while store.looks[-1] != 1_000:  # noqa: ASYNC110
            await asyncio.sleep(0)
        store.left = {A: 5_000}
        ticker.on_signal(store.signal(A, 5_000))
        store.slow.set()
        await advancing
        await store._clock.advance(4_000)
        assert store.ticks == [(A, 5_000)]


async def test_a_new_deadline_wakes_it_from_the_pause_of_an_outage() -> None:
    """Also if it is later than the one that it slept towards before."""
    async with ticking() as (store, ticker):
        store.left = {B: 50}
        ticker.on_signal(store.signal(B, 50))
        await store._clock.advance(49)
        store.due_errors.append(StoreDown("down"))
        await store._clock.advance(1)
        store.left = {A: 100}
        ticker.on_signal(store.signal(A, 100))
        await store._clock.advance(50)
        assert store.ticks == [(A, 100)]


async def test_a_scope_that_another_node_holds_is_looked_at_again_soon() -> None:
    async with ticking() as (store, ticker):
        store.left = {A: 1_000}
        store.tick_errors = [ScopeBusy(), ScopeBusy()]
        ticker.on_signal(store.signal(A, 1_000))
        await store._clock.advance(1_000 + 2 * LEFT_PAUSE_MS)
        assert store.ticks == [(A, 1_000 + 2 * LEFT_PAUSE_MS)]


async def test_a_scope_that_is_gone_holds_up_nobody() -> None:
    async with ticking() as (store, ticker):
        store.left = {A: 1_000, B: 1_000}
        store.tick_errors = [Refused(Code.UNKNOWN_SCOPE, "gone")]
        ticker.on_signal(store.signal(A, 1_000))
        await store._clock.advance(1_000)
        assert (B, 1_000) in store.ticks


async def test_a_scope_that_refuses_its_tick_is_left_for_later() -> None:
    async with ticking() as (store, ticker):
        store.left = {A: 1_000}
        store.tick_errors = [Refused(Code.SCOPE_FULL, "odd")]
        ticker.on_signal(store.signal(A, 1_000))
        await store._clock.advance(1_000 + LEFT_PAUSE_MS)
        assert store.ticks == [(A, 1_000 + LEFT_PAUSE_MS)]


async def test_what_does_not_fit_into_one_batch_follows_at_once() -> None:
    async with ticking() as (store, ticker):
        store.left = {ScopeId(str(number)): 1_000 for number in range(2 * BATCH_SCOPES_MAX + 1)}
        scopes = set(store.left)
        ticker.on_signal(store.signal(A, 1_000))
        await store._clock.advance(1_000)
        assert {id for id, _ in store.ticks} == scopes
        assert store.now == 1_000


async def test_a_later_deadline_costs_no_look_while_it_sleeps() -> None:
    async with ticking() as (store, ticker):
        store.left = {A: 30_000}
        ticker.on_signal(store.signal(A, 30_000))
        await store._clock.settle()
        before = len(store.looks)
        for at in (30_000, 30_001, 70_000, None):
            ticker.on_signal(store.signal(B, at))
            await store._clock.settle()
        assert len(store.looks) == before
        ticker.on_signal(store.signal(B, 29_999))
        await store._clock.settle()
        assert len(store.looks) == before + 1
