"""Views of a shared store, with the test in the place of the follower that looks after them."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import BeginAnew, Schedule
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventType, Scope, ScopeId
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.ports import Receipt
from fairwarning.engine.service import Engine
from fairwarning.engine.step_back import StepBack
from fairwarning.engine.view import View
from fairwarning.engine.views import OtherPast, Views
from tests.core.builders import event_id, names
from tests.engine.harness import ME, Rig
from tests.engine.shared_store import SharedStore
from tests.support.patience import HANG_S

NOTHING_LOST = StepBack(common_ms=Instant(10**15), lost=frozenset())


class Alone:
    """A scope, an engine that changes it, and views that hear only what the test tells them."""

    def __init__(self, store: SharedStore, engine: Engine, scope_id: ScopeId) -> None:
        self.store = store
        self.engine = engine
        self.scope_id = scope_id
        self.anew: list[BeginAnew] = []
        self.news: list[tuple[ScopeId, int]] = []
        self.views = Views(store, self._begin_anew)
        self.views.on_news = lambda scope_id, revision: self.news.append((scope_id, revision))

    async def _begin_anew(self, scope_id: ScopeId, command: BeginAnew) -> Receipt:
        self.anew.append(command)
        return await self.engine.submit(scope_id, command, by=ME)

    @property
    def view(self) -> View:
        return self.views._views[self.scope_id]

    async def stored(self) -> Scope:
        return await self.store.read(self.scope_id)

    async def schedule(self, number: int = 1) -> Scope:
        """A change that the views do not hear of."""
        id, target = event_id(number), names(f"web-{number % 4}")
        command = Schedule(event_id=id, type=EventType.REBOOT, targets=target)
        return (await self.engine.submit(self.scope_id, command, by=ME)).scope

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def settled(self) -> None:
        await self.until(lambda: not self.views._rereads._running)


async def alone() -> Alone:
    clock = VirtualClock()
    store = SharedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.stop()  # It still changes what the test asks for, and nothing by itself.
    found = Alone(store, engine, scope.id)
    await found.views.load()
    return found


async def test_a_commit_of_the_lost_past_is_not_shown_in_the_new_one() -> None:
    """Its number is higher, and means nothing: what counts is what is read from now on."""
    rig = await alone()
    saved = rig.store.save()
    lost = await rig.schedule()
    rig.store.restore(saved)
    rig.views.begin_era(NOTHING_LOST)
    rig.views.put(lost)
    assert not rig.view.shows(event_id(1))
    await rig.settled()
    assert rig.view.is_of(await rig.stored())
    assert rig.view.era == rig.views._era


async def test_a_commit_that_is_less_than_what_is_shown_is_looked_up() -> None:
    rig = await alone()
    before, saved = await rig.stored(), rig.store.save()
    rig.views.put(await rig.schedule())
    rig.views.put(before)
    await rig.settled()
    assert not rig.views.contradicted, "it only came late"
    rig.store.restore(saved)
    rig.views.put(before)
    await rig.settled()
    assert rig.views.contradicted == {rig.scope_id}


async def test_a_change_is_refused_unless_it_is_made_to_what_is_shown() -> None:
    rig = await alone()
    before, saved = await rig.stored(), rig.store.save()
    shown = await rig.schedule(1)
    rig.views.put(shown)
    rig.store.restore(saved)
    other = await rig.schedule(2)
    assert other.revision == shown.revision
    for stored in (before, other):
        with pytest.raises(OtherPast):
            rig.views.refuse_other_past(stored)
    rig.views.refuse_other_past(shown)
    rig.views.refuse_other_past(replace(shown, revision=shown.revision + 1))
    await rig.views.close()


async def test_what_the_first_of_two_step_backs_has_lost_is_not_forgotten() -> None:
    rig = await alone()
    rig.views.begin_era(StepBack(common_ms=Instant(10**15), lost=frozenset({rig.scope_id})))
    rig.views.begin_era(NOTHING_LOST)
    await rig.views.reload()
    assert len(rig.anew) == 1
    assert not rig.views.is_reloading
    rig.views.begin_era(NOTHING_LOST)
    await rig.views.reload()
    assert len(rig.anew) == 1, "a step back that was followed is over"


async def test_the_revision_that_a_read_has_found_is_told_once() -> None:
    rig = await alone()
    await rig.views.refresh(rig.scope_id)
    assert rig.news == []
    new = await rig.schedule()
    for _ in range(2):
        await rig.views.refresh(rig.scope_id)
    assert rig.news == [(rig.scope_id, new.revision)]
