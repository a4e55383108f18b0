"""A node on a store that steps back: it notices, whatever it had heard, and follows."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.model import Scope, ScopeId
from fairwarning.core.resources import VirtualMachine
from fairwarning.core.rollouts.model import RolloutPhase
from fairwarning.engine import follower
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Signal, StoreDown
from fairwarning.engine.step_back import StepBack
from tests.core.rollouts.test_advance import MONDAY
from tests.engine.harness import ME
from tests.engine.rolling import REBOOT, Node, web
from tests.engine.shared_store import SharedStore
from tests.engine.watched import Watched, quick, watched
from tests.support.patience import HANG_S

__all__ = ["quick"]


async def test_what_was_read_from_the_journal_is_missed() -> None:
    async with watched() as node:
        await node.schedule()
        await node.until_true()
        saved = node.store.save()
        for target in ("web-1", "web-2", "web-3"):
            await node.schedule(target)
            await node.until_true()
        before = set(node.shown)
        node.store.restore(saved)
        await node.until(lambda: node.engine.step_backs == 1)
        await node.until_true()
        assert node.see() not in before
        assert (node.view.incarnation, len(await node.anew())) == (1, 1)
        id = await node.schedule("web-1")
        await node.until(lambda: node.view.shows(id))
        assert node.see() not in before
        assert node.engine.step_backs == 1


async def test_it_is_missed_behind_new_entries_at_the_same_positions() -> None:
    """Another node writes as much again before anybody looks."""
    async with watched() as node:
        saved = node.store.save()
        lost = await node.schedule("web-0")
        await node.until_true()
        before = set(node.shown)
        node.store.signals = []
        node.store.restore(saved)
        new = await node.schedule("web-1")
        await node.until(lambda: node.view.shows(new))
        assert not node.view.shows(lost)
        assert node.see() not in before
        assert len(await node.anew()) == 1


async def test_a_commit_that_the_journal_never_shows_is_looked_up() -> None:
    """The last commits before a fail-over: heard of by signal, and lost before they were read."""
    async with watched() as node:
        saved = node.store.save()
        await unread(node, "web-0")
        before = {node.see()}
        node.store.restore(saved)
        await node.until_true()
        assert node.see() not in before
        assert len(await node.anew()) == 1


async def test_another_commit_of_the_same_revision_is_noticed_by_its_time() -> None:
    """The lost one was never read, and what is stored by now has a higher revision."""
    async with watched() as node:
        saved = node.store.save()
        await unread(node, "web-0")
        node.see()
        before = set(node.shown)
        node.store.down.add("journal")
        node.store.restore(saved)
        node.rig.clock.step(1)
        node.store.signals = []
        await node.schedule_elsewhere("web-1")
        new = await node.schedule_elsewhere("web-2")
        node.store.down.clear()
        await node.until(lambda: bool(node.engine.step_backs))
        await node.until(lambda: node.view.shows(new))
        assert node.see() not in before
        assert len(await node.anew()) == 1


async def unread(node: Watched, target: str) -> None:
    """A commit of this node that its follower has no time to read."""
    node.store.down.add("journal")
    await node.schedule(target)
    await node.until_true()
    for reading in list(node.engine.views._rereads._running.values()):
        reading.cancel()
    node.store.down.discard("journal")


async def test_a_scope_that_is_read_with_less_than_before_is_proof() -> None:
    async with watched() as node:
        saved = node.store.save()
        lost = await node.schedule("web-0")
        await node.until_true()
        assert node.engine._follower is not None
        node.store.down.add("journal")
        node.store.restore(saved)
        await node.engine.views.refresh(node.scope_id)
        assert node.engine.views.contradicted == {node.scope_id}
        assert node.view.shows(lost), "until it has begun anew it stays as it is"
        node.store.down.clear()
        await node.until_true()
        assert not node.view.shows(lost)


async def test_a_scope_of_the_same_revision_with_another_document_is_proof() -> None:
    async with watched() as node:
        saved = node.store.save()
        lost = await node.schedule("web-0")
        await node.until_true()
        node.store.down.add("journal")
        node.store.restore(saved)
        new = await node.schedule_elsewhere("web-1")
        revision = (await node.store.read(node.scope_id)).revision
        assert revision == node.view.revision
        await node.until(lambda: bool(node.engine.views.contradicted))
        node.store.down.clear()
        await node.until(lambda: node.view.shows(new))
        assert not node.view.shows(lost)
        assert len(await node.anew()) == 1


async def test_a_commit_of_our_own_on_less_than_we_knew_changes_nothing() -> None:
    """It would give a number that was shown to another document."""
    async with watched() as node:
        saved = node.store.save()
        await node.schedule("web-0")
        await node.schedule("web-1")
        await node.until_true()
        await node.until(lambda: not node.engine.views._rereads._running)
        node.store.down.add("journal")
        node.store.restore(saved)
        stored = await node.store.read(node.scope_id)
        with pytest.raises(StoreDown):
            await node.schedule("web-2")
        assert await node.store.read(node.scope_id) == stored
        await node.until(lambda: node.engine.views.contradicted == {node.scope_id})


async def test_a_commit_of_our_own_waits_until_the_step_back_was_followed() -> None:
    async with watched() as node:
        saved = node.store.save()
        await node.schedule("web-0")
        await node.until_true()
        before = set(node.shown)
        node.store.signals = []
        node.store.restore(saved)
        new = await node.schedule("web-1")
        await node.until(lambda: node.view.shows(new))
        assert node.see() not in before
        assert len(await node.anew()) == 1


async def test_what_was_read_before_the_step_back_was_noticed_does_not_count() -> None:
    async with watched() as node:
        await node.schedule("web-0")
        await node.until_true()
        lost = replace(await node.store.read(node.scope_id), revision=99)
        gate, reads = asyncio.Event(), 0

        async def read(scope_id: ScopeId) -> Scope:
            """The first answer is from before, and comes late."""
            nonlocal reads
            reads += 1
            if reads > 1:
                return await stored(scope_id)
            await gate.wait()
            return lost

        stored = node.engine.views._store.read
        views = node.engine.views
        views._store = SlowReads(node.store, read)  # type: ignore[assignment]
        views._rereads.read_soon(node.scope_id)
        await node.until(lambda: reads >= 1)
        views.begin_era(StepBack(common_ms=None, lost=frozenset()))
        gate.set()
        await node.until(lambda: reads >= 2)
        await node.until(lambda: node.view.era == views._era)
        assert node.view.revision < 99


class SlowReads:
    """A store whose reads of a scope are the test's."""

    def __init__(self, store: SharedStore, read: Callable[[ScopeId], Awaitable[Scope]]) -> None:
        self._store = store
        self.read = read

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


async def test_news_of_the_lost_past_that_comes_late_does_not_stay() -> None:
    async with watched() as node:
        saved = node.store.save()
        await node.schedule("web-0")
        await node.schedule("web-1")
        await node.until_true()
        lost = await node.store.read(node.scope_id)
        node.store.restore(saved)
        await node.until(lambda: node.engine.step_backs == 1)
        await node.until_true()
        node.engine.views.on_signal(
            Signal(scope_id=lost.id, next_deadline_ms=None, scope=replace(lost, revision=99))
        )
        assert node.view.revision == 99
        await node.until_true()


async def test_late_news_in_a_healthy_store_changes_nothing() -> None:
    async with watched() as node:
        await node.schedule("web-0")
        old = await node.store.read(node.scope_id)
        await node.schedule("web-1")
        await node.until_true()
        for _ in range(3):
            node.engine.views.on_signal(Signal(scope_id=old.id, next_deadline_ms=None, scope=old))
        await asyncio.sleep(0.02)
        await node.until_true()
        assert node.engine.step_backs == 0


async def test_scopes_and_addresses_that_the_store_no_longer_has_go() -> None:
    async with watched() as node:
        saved = node.store.save()
        (late,) = await node.engine.declare(
            [VirtualMachine(name="late", addresses=("10.9.9.9",))], by=ME
        )
        await node.until(lambda: node.engine.views.by_address("10.9.9.9") is not None)
        member = node.engine.views.by_address("10.9.9.9")
        assert member is not None
        woken: list[bool] = []
        member.view.listen(lambda: woken.append(True))
        generation = node.engine.views.generation
        node.store.restore(saved)
        await node.until(lambda: not node.engine.views.has_scope(late.id))
        assert node.engine.views.by_address("10.9.9.9") is None
        assert node.engine.views.by_name("late") == []
        assert woken
        assert node.engine.views.generation > generation
        assert late.id not in node.engine.views._views


async def test_scopes_that_lost_nothing_go_on_as_they_are() -> None:
    async with watched() as node:
        other = await node.rig.declare(node.engine, VirtualMachine(name="db"))
        await node.until(lambda: other.id in node.engine.views._views)
        view = node.engine.views._views[other.id]
        await node.until(lambda: view.activated_ms is not None)
        tag = view.tag
        # What the journal has not shown yet counts as lost, to be on the safe side.
        await node.until(node.is_proved)
        saved = node.store.save()
        await node.schedule()
        await node.until_true()
        node.store.restore(saved)
        await node.until(lambda: node.engine.step_backs == 1)
        await node.until(lambda: not node.engine.views.is_reloading)
        assert view.tag == tag
        assert node.engine.views._views[other.id] is view


@pytest.mark.parametrize("method", ["journal", "read", "scopes", "transact", "history"])
@pytest.mark.parametrize("kind", ["down", "broken"])
async def test_an_outage_while_it_is_followed_only_delays(
    method: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched() as node:
        saved = node.store.save()
        for number in range(4):
            await node.schedule(f"web-{number}")
            await node.until_true()
        if method == "history":
            # Nothing that the node remembers is left, so that it has to begin at the end.
            saved["_entries"] = [replace(e, at_ms=Instant(e.at_ms + 1)) for e in saved["_entries"]]
        before = set(node.shown)
        failing = getattr(node.store, kind)
        failing.add(method)
        calls = node.store.calls[method]
        node.store.restore(saved)
        await node.until(lambda: node.store.calls[method] > calls + 3)
        failing.clear()
        await node.until_true()
        assert node.see() not in before
        assert len(await node.anew()) == 1


async def test_it_may_step_back_again_while_the_first_time_is_followed() -> None:
    async with watched() as node:
        first = node.store.save()
        await node.schedule("web-0")
        await node.until_true()
        second = node.store.save()
        await node.schedule("web-1")
        await node.until_true()
        before = set(node.shown)
        node.store.down.add("scopes")
        node.store.restore(second)
        await node.until(lambda: node.engine.step_backs == 1)
        await node.until_true()
        assert node.engine.views.is_reloading
        node.store.restore(first)
        await node.until(lambda: node.engine.step_backs == 2)
        node.store.down.clear()
        await node.until_true()
        await node.until(lambda: not node.engine.views.is_reloading)
        assert node.see() not in before
        assert len(node.view.document(NEWEST)) < 60


async def test_two_nodes_begin_anew_together_once() -> None:
    async with watched() as node:
        other = await node.rig.node("n2")
        await other.show()
        saved = node.store.save()
        await node.schedule()
        await node.until_true()
        await node.until(lambda: other.views._views[node.scope_id].is_of(node_scope(node)))
        node.store.restore(saved)
        await node.until(lambda: node.engine.step_backs == other.step_backs == 1)
        await node.until_true()
        await node.until(lambda: other.views._views[node.scope_id].tag == node.view.tag)
        assert len(await node.anew()) == 1
        await other.stop()


def node_scope(node: Watched) -> Scope:
    found: Scope = node.store._scopes[node.scope_id]
    return found


async def test_a_look_that_is_asked_for_often_is_taken_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched() as node:
        monkeypatch.setattr(follower, "RECHECK_S", 600)
        monkeypatch.setattr(follower, "CHECK_EVERY_S", 600)
        await node.engine.check_past()
        await node.engine.check_past()
        await asyncio.sleep(0.02)
        calls = node.store.calls["journal"]
        await asyncio.gather(*(node.engine.check_past() for _ in range(100)))
        assert node.store.calls["journal"] == calls
        node.store.down.add("journal")
        node.engine.views.contradicted.add(node.scope_id)
        asked = [asyncio.create_task(node.engine.check_past()) for _ in range(100)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each).__name__ for each in found} == {"StoreDown"}
        assert node.store.calls["journal"] <= calls + 3


async def test_who_waits_for_a_look_when_the_node_stops_goes_on() -> None:
    async with watched() as node:
        node.store.down.add("journal")
        await node.engine.stop()
        async with asyncio.timeout(HANG_S):
            await node.engine.check_past()


async def test_scopes_that_are_polled_are_noted_again_at_once() -> None:
    """Notes of who asked are in no journal. Lost, they would let a watched scope fall asleep."""
    async with watched() as node:
        quiet = await node.rig.declare(node.engine, VirtualMachine(name="db"))
        await node.until(lambda: quiet.id in node.engine.views._views)
        view = node.engine.views._views[quiet.id]
        await node.until(lambda: view.activated_ms is not None)
        saved = node.store.save()
        view.is_asked = True
        await node.rig.clock.advance(6 * MINUTE_MS)
        noted = (await node.store.read(quiet.id)).last_seen_ms
        await node.schedule()
        await node.until_true()
        node.store.restore(saved)

        async def is_noted() -> bool:
            seen = (await node.store.read(quiet.id)).last_seen_ms
            return seen is not None and noted is not None and seen >= noted

        assert not await is_noted()
        await node.until(is_noted)


async def test_a_rollout_that_is_unfinished_again_is_carried_on() -> None:
    """One that was over, from long ago, and of which a node need not look any more."""
    clock = VirtualClock(MONDAY)
    store = SharedStore(clock)
    node = await Node(store, clock).start()
    await node.engine.show()
    await node.declare(web("a"))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await node.rollouts.pause(rollout.id, by=ME)
    await clock.settle()
    saved = store.save()
    announced = len(await node.announced())
    await node.rollouts.cancel(rollout.id, by=ME)
    clock.step(3 * DAY_MS)
    for _ in range(2):  # One that ends it, and one that finds it over.
        await node.rollouts._runner.look()
    store.restore(saved)
    async with asyncio.timeout(HANG_S):
        while not node.engine.step_backs:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.PAUSED
    await node.rollouts.resume(rollout.id, by=ME)
    await clock.advance(HOUR_MS)
    assert len(await node.announced()) > announced
    await node.stop()
