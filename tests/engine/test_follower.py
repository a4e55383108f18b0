"""What a node on a shared store remembers of news that the journal has not shown it yet."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairwarning.core.commands import Activate, Cancel, Command, Schedule
from fairwarning.core.model import ENGINE, EventType, Scope
from fairwarning.core.resources import VirtualMachine
from fairwarning.engine import follower
from fairwarning.engine.change_feed import Feed
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.follower import Follower
from fairwarning.engine.protocols import Entry, Signal
from fairwarning.engine.service import Engine
from fairwarning.engine.step_back import StepBack
from tests.core.builders import event_id, names
from tests.engine.harness import ME, Rig
from tests.engine.shared_store import SharedStore
from tests.engine.watched import quick, watched
from tests.support.patience import HANG_S

__all__ = ["quick"]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def _is_proved(engine: Engine) -> bool:
    """Whether the journal has shown all that the node has heard of."""
    assert engine._follower is not None
    unconfirmed = engine._follower._unconfirmed
    return not unconfirmed._new and not unconfirmed._old


def _reboot(number: int, target: str) -> Schedule:
    return Schedule(event_id=event_id(number), type=EventType.REBOOT, targets=names(target))


async def test_an_idle_store_is_asked_for_its_journal_and_for_nothing_else() -> None:
    async with watched() as node:
        await node.schedule()
        await node.until_true()
        await _until(node.is_proved)
        reads, pages = node.store.calls["read"], node.store.calls["journal"]
        await _until(lambda: node.store.calls["journal"] > pages + 20)
        assert node.store.calls["read"] == reads


async def test_a_change_while_the_views_are_made_is_shown() -> None:
    """It is told by no signal, and is in the journal already when that is first followed."""
    clock = VirtualClock()
    store = SharedStore(clock)
    rig = Rig(store, clock)
    other = await rig.node("b")
    scope = await rig.declare(other)
    history, is_changed = store.history, False

    async def changed_before(**named: Any) -> list[Entry]:
        nonlocal is_changed
        if not is_changed:
            is_changed = True
            store.signals = []
            await other.submit(scope.id, _reboot(1, "web-0"), by=ME)
            store.signals = None
        return await history(**named)

    vars(store)["history"] = changed_before
    engine = await rig.node("a")
    views = await engine.show()
    assert is_changed
    assert views._views[scope.id].shows(event_id(1))
    await engine.stop()
    await other.stop()


async def test_a_stopped_node_reads_nothing_more() -> None:
    async with watched() as node:
        await node.engine.stop()
        left = {each.get_name() for each in asyncio.all_tasks()}
        assert not left & {"follower", "seen notes", "ticker"}
        reads = node.store.calls["read"]
        node.engine._on_signal(Signal(scope_id=node.scope_id, next_deadline_ms=None))
        for _ in range(20):
            await asyncio.sleep(0)
        assert node.store.calls["read"] == reads


async def test_what_the_journal_never_showed_may_be_lost_too() -> None:
    """Another node has written the scope twice since, so its revision is higher than ours."""
    clock = VirtualClock()
    store = SharedStore(clock)
    rig = Rig(store, clock)
    engine, other = await rig.node("a"), await rig.node("b")
    await engine.show()
    x, y = await engine.declare([VirtualMachine(name=name) for name in "xy"], by=ME)
    for scope in (x, y):
        await engine.submit(scope.id, Activate(), by=ENGINE)
    await _until(lambda: _is_proved(engine))
    saved = store.save()
    await engine.submit(y.id, _reboot(1, "y"), by=ME)
    await _until(lambda: _is_proved(engine))
    # The old primary takes one more commit, which this node shows, and nobody else hears of.
    store.down.add("journal")
    await engine.submit(x.id, _reboot(2, "x"), by=ME)
    view = engine.views._views[x.id]
    await _until(lambda: view.incarnation == 2)
    served = view.activated_ms
    store.signals = []
    store.restore(saved)
    await other.submit(x.id, _reboot(3, "x"), by=ME)
    await other.submit(x.id, Cancel(event_id=event_id(3)), by=ME)
    store.down.clear()
    store.signals = None
    await _until(lambda: engine.step_backs >= 1 and view.activated_ms != served)
    assert (await store.read(x.id)).activated_ms == view.activated_ms
    await engine.stop()
    await other.stop()


@pytest.mark.parametrize("lost", [20, 150])
async def test_a_stream_is_told_all_that_is_new_however_much_was_lost(lost: int) -> None:
    """It remembers fewer entries than are lost, and others have their numbers by now."""
    clock = VirtualClock()
    store = SharedStore(clock)
    rig = Rig(store, clock)
    engine, other = await rig.node("a"), await rig.node("b")
    await engine.show()
    scope = await rig.declare(engine)
    seen: list[Entry] = []

    async def read() -> None:
        async for entry in engine.changes():
            seen.append(entry)  # noqa: PERF401

    stream = asyncio.create_task(read())
    saved = store.save()
    fork = len(store._entries)
    await _write(engine, store, scope, lost, first=100)
    await _until(lambda: len(seen) == len(store._entries))
    told = len(seen)
    store.down.add("journal")
    store.signals = []
    store.restore(saved)
    clock.step(1_000)
    await _write(other, store, scope, 80, first=5_000)
    store.down.clear()
    store.signals = None
    new = store._entries[fork:]
    await _until(lambda: all(entry in seen[told:] for entry in new))
    stream.cancel()
    await engine.stop()
    await other.stop()


async def _write(engine: Engine, store: SharedStore, scope: Scope, lines: int, first: int) -> None:
    until = len(store._entries) + lines
    while len(store._entries) < until:
        pair: tuple[Command, ...] = (_reboot(first, "web-0"), Cancel(event_id=event_id(first)))
        for command in pair:
            await engine.submit(scope.id, command, by=ME)
        first += 1


async def test_a_renewed_lease_is_no_step_back_although_the_journal_does_not_show_it() -> None:
    async with watched() as node:
        id = event_id(1)
        command = Schedule(
            event_id=id, type=EventType.REBOOT, targets=names("web-0"), duration_s=300
        )
        await node.engine.submit(node.scope_id, command, by=ME)
        await node.engine.approve(id, by=ME)
        await node.rig.clock.advance(200_000)
        await node.schedule("web-2")
        await node.until_true()
        await _until(node.is_proved)
        assert node.engine.step_backs == 0


async def test_views_are_known_to_be_true_only_at_the_end_of_the_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "PAGE_ENTRIES_MAX", 2)
    clock = VirtualClock()
    store = SharedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    views = Views(store, engine._submit_own)
    follows = Follower(store, Feed(store), views, lambda: None)
    await follows.begin()
    await views.load()
    for number in range(1, 4):
        await engine.submit(scope.id, _reboot(number, f"web-{number}"), by=ME)
    began_s = follows._true_s
    later_s = began_s + 7
    while len(await follows._reader.page(2)) == 2:
        await follows._look()
        assert follows._true_s == began_s
    await follows._look()
    assert follows._true_s == began_s, "no look came before, so the views are as old as the start"
    follows._looked_s = later_s
    await follows._look()
    assert follows._true_s == later_s, "when the look before began: what came since may be missing"
    views.begin_era(StepBack(common_ms=None, lost=frozenset()))
    follows._looked_s = later_s + 1
    await follows._look()
    assert follows._true_s == later_s, "not while views are read anew"
    await views.close()
    await engine.stop()


async def test_how_old_the_views_may_be_is_known() -> None:
    async with watched() as node:
        await node.schedule()
        await node.until_true()
        lag_s = node.engine.views_lag_s
        assert lag_s is not None
        node.store.down.add("journal")
        outage_s = asyncio.get_running_loop().time()
        await _until(lambda: (node.engine.views_lag_s or 0) > 0.05)
        began_s = asyncio.get_running_loop().time()
        assert (node.engine.views_lag_s or 0) >= began_s - outage_s - 0.05
        node.store.down.clear()
        await _until(lambda: (node.engine.views_lag_s or 1) < began_s - outage_s)


async def test_views_are_as_old_as_the_news_that_waits_to_be_read() -> None:
    """The journal has been read to its end many times since, and the scope still was not."""
    async with watched() as node:
        node.store.down.add("read")
        node.engine._on_signal(Signal(scope_id=node.scope_id, next_deadline_ms=None))
        told_s = asyncio.get_running_loop().time()
        pages = node.store.calls["journal"]
        await _until(lambda: node.store.calls["journal"] > pages + 5)
        now_s = asyncio.get_running_loop().time()
        assert (node.engine.views_lag_s or 0) >= now_s - told_s
        node.store.down.clear()
        waited_s = asyncio.get_running_loop().time() - told_s
        await _until(lambda: (node.engine.views_lag_s or waited_s) < waited_s)
