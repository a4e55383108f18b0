"""Views of a shared store, with the test in the place of the follower that looks after them."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import BeginAnew, Schedule
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventType, Scope, ScopeId
from fairwarning.engine import document_views
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import OtherPast, Views
from fairwarning.engine.protocols import Receipt
from fairwarning.engine.scope_view import View
from fairwarning.engine.service import Engine
from fairwarning.engine.step_back import StepBack
from tests.core.builders import event_id, names
from tests.engine.harness import ME, Rig
from tests.engine.shared_store import SharedStore
from tests.support.loop_turns import turns_beside
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
    assert [each.served_ms for each in rig.anew] == [10**15], "behind all that is shared"
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


async def test_what_was_read_before_a_step_back_is_read_once_more() -> None:
    rig = await alone()
    reading = asyncio.create_task(rig.views.refresh(rig.scope_id))
    reads = rig.store.calls["read"]
    await rig.until(lambda: rig.store.calls["read"] > reads)
    rig.views.begin_era(NOTHING_LOST)
    await reading
    await rig.settled()
    assert rig.store.calls["read"] == reads + 2
    assert rig.view.era == rig.views._era


async def test_what_a_read_finds_after_a_step_back_that_is_followed_is_no_other() -> None:
    rig = await alone()
    saved = rig.store.save()
    rig.views.put(await rig.schedule())
    rig.store.restore(saved)
    reading = asyncio.create_task(rig.views.refresh(rig.scope_id))
    reads = rig.store.calls["read"]
    await rig.until(lambda: rig.store.calls["read"] > reads)
    rig.views.begin_era(StepBack(common_ms=Instant(10**15), lost=frozenset({rig.scope_id})))
    await reading
    await rig.settled()
    assert rig.views.contradicted == set()


async def test_a_lower_number_in_a_higher_revision_is_a_contradiction() -> None:
    rig = await alone()
    shown = await rig.schedule()
    rig.views.put(shown)
    rig.views.put(replace(shown, revision=shown.revision + 1, incarnation=1))
    assert rig.views.contradicted == {rig.scope_id}
    assert rig.view.incarnation == shown.incarnation


async def test_who_waits_counts_as_asking() -> None:
    rig = await alone()
    waiting: list[bool] = []
    listener = lambda: waiting.append(True)  # noqa: E731
    assert not rig.views.is_asked(rig.scope_id)
    rig.view.listen(listener)
    assert rig.views.is_asked(rig.scope_id)
    rig.view.forget(listener)
    assert not rig.views.is_asked(rig.scope_id)
    rig.view.is_asked = True
    assert rig.views.is_asked(rig.scope_id)


async def test_one_who_waits_and_breaks_does_not_keep_the_news_from_others() -> None:
    rig = await alone()
    told: list[int] = []

    def breaks() -> None:
        raise RuntimeError("a bug")

    rig.view.listen(breaks)
    rig.view.listen(lambda: told.append(rig.view.incarnation))
    new = await rig.schedule()
    rig.views.put(new)
    rig.views.put(await rig.schedule(2))
    assert told == [new.incarnation], "once each"


async def test_an_instance_that_is_gone_is_known_as_deleted_until_it_comes_again() -> None:
    rig = await alone()
    scope = await rig.stored()
    (member,) = rig.views.by_name("web-0")
    roster, name = scope.roster, names("web-0")[0]
    gone = replace(roster.instances[name], deleted_ms=Instant(1))
    instances = {**roster.instances, name: gone}
    without = replace(scope, revision=90, roster=replace(roster, instances=instances))
    rig.views.put(without)
    assert not member.is_live
    assert rig.views.by_name("web-0") == []
    assert rig.views.deleted("web-0") == [rig.scope_id]
    rig.views.put(replace(scope, revision=91))
    assert rig.views.deleted("web-0") == []
    (again,) = rig.views.by_name("web-0")
    assert again.is_live


async def test_scopes_are_found_by_any_part_of_a_name_whatever_its_case() -> None:
    rig = await alone()
    rig.views.put(replace(await rig.stored(), id=ScopeId("sub/Shop")))
    assert await rig.views.search("b/shop") == ["sub/Shop"]
    for text in ("WEB-3", "web-3"):
        assert await rig.views.search(text) == [rig.scope_id, "sub/Shop"]
    assert await rig.views.search(rig.scope_id.upper()) == [rig.scope_id]
    assert await rig.views.search("web-9") == []


async def test_polls_are_answered_while_a_large_fleet_is_searched_or_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = await alone()
    scopes = 20
    for number in range(scopes):
        rig.views.put(replace(await rig.stored(), id=ScopeId(f"sub/shop{number}")))
    monkeypatch.setattr(document_views, "SEARCH_SLICE", 1)
    assert await turns_beside(rig.views.search("web-9")) >= scopes
    assert await turns_beside(rig.views.summary()) >= scopes
    assert (await rig.views.summary()).scopes == scopes + 1


async def test_a_scope_that_goes_during_a_search_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = await alone()
    gone = [ScopeId(f"sub/shop{number}") for number in range(1_000)]
    for id in gone:
        rig.views.put(replace(await rig.stored(), id=id))
    monkeypatch.setattr(document_views, "SEARCH_SLICE", 1)
    search = asyncio.create_task(rig.views.search("web-3"))
    await asyncio.sleep(0)
    rig.views.begin_era(NOTHING_LOST)
    await rig.views.reload()
    assert not search.done()
    assert gone[-1] not in await search


async def test_only_activated_scopes_of_test_fleets_have_documents_to_spoil() -> None:
    rig = await alone()
    shown = await rig.stored()
    roster = replace(shown.roster, test=True)
    rig.views.put(replace(shown, revision=90, roster=roster))
    assert rig.views.test_views() == [rig.view]
    rig.views.put(replace(shown, revision=91, roster=roster, activated_ms=None))
    assert rig.views.test_views() == []
    assert rig.views.has_test_scope()


async def test_an_event_is_reported_as_seen_once() -> None:
    rig = await alone()
    rig.views.put(await rig.schedule())
    assert rig.view.take_unseen(NEWEST) == (event_id(1),)
    assert rig.view.take_unseen(NEWEST) == ()


async def test_a_view_remembers_the_last_activations_that_it_has_shown() -> None:
    rig = await alone()
    scope = await rig.stored()
    for number in range(1, 31):
        rig.view.put(replace(scope, revision=90 + number, activated_ms=Instant(number)))
    assert rig.view.earlier == tuple(range(10, 30))


async def test_a_name_that_another_scope_lets_go_of_keeps_its_instance_here() -> None:
    rig = await alone()
    scope = await rig.stored()
    other = replace(scope, id=ScopeId("other"))
    rig.views.put(other)
    assert len(rig.views.by_name("web-0")) == 2
    empty = replace(other.roster, instances={})
    rig.views.put(replace(other, revision=90, roster=empty))
    assert [each.view.scope_id for each in rig.views.by_name("web-0")] == [scope.id]


async def test_each_of_three_scopes_with_the_same_name_is_found_by_it() -> None:
    rig = await alone()
    scope = await rig.stored()
    ids = [scope.id, ScopeId("second"), ScopeId("third")]
    for id in ids[1:]:
        rig.views.put(replace(scope, id=id))
    assert [each.view.scope_id for each in rig.views.by_name("web-0")] == ids


async def test_a_view_is_of_a_scope_only_at_its_revision_and_activation() -> None:
    rig = await alone()
    scope = await rig.stored()
    newer = replace(scope, revision=scope.revision + 1)
    rig.views.put(newer)
    assert rig.view.is_of(newer), "also if the document is the same"
    assert not rig.view.is_of(scope)
    assert not rig.view.is_of(replace(newer, activated_ms=None))


async def test_who_polls_and_how_often_is_worked_out_since_the_last_time() -> None:
    rig = await alone()
    (member,) = rig.views.by_name("web-0")
    member.polls = 3
    rig.views.sample(100.0, 30.0)
    rig.views.sample(130.0, 30.0)
    assert (member.per_minute, member.last_s) == (6.0, 100.0)
    member.polls += 1
    rig.views.sample(160.0, 30.0)
    assert (member.per_minute, member.last_s) == (2.0, 160.0)
