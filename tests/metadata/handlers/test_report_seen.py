"""Who was shown an event first, and who polls with what: told in the history and to operators."""

import asyncio
from typing import Any

import pytest

from fairwarning.core.commands import Command, ReportSeen
from fairwarning.core.model import EventId, EventType, InstanceName, ScopeId
from fairwarning.core.transitions import Seen
from fairwarning.engine.protocols import StoreDown
from tests.metadata.rig import PATH, Rig
from tests.support.patience import HANG_S

OLD = "/metadata/scheduledevents?api-version=2017-03-01"


async def test_the_first_instance_to_be_shown_an_event_is_remembered(rig: Rig) -> None:
    await rig.ask()
    id = await rig.schedule()
    await rig.ask(source="127.0.1.12")
    await rig.ask(source="127.0.1.10")
    changes = rig.engine.changes()
    seen = []
    async for entry in changes:
        if isinstance(entry.transition, Seen):
            seen.append((str(entry.by), entry.transition.event_id))
            break
    await changes.aclose()
    assert seen == [("instance:web-2", id)]
    scope = await rig.store.read(rig.web.id)
    sight = scope.events[id].sight
    assert sight is not None
    assert sight.by == "web-2"


async def test_who_asks_in_a_version_that_hides_an_event_has_not_seen_it(rig: Rig) -> None:
    await rig.ask(OLD)
    preempt = await rig.schedule("web-0", EventType.PREEMPT)
    reboot = await rig.schedule("web-1", EventType.REBOOT)
    shown = await rig.ask(OLD, source="127.0.1.12")
    assert (shown.shows(preempt), shown.shows(reboot)) == (False, True)
    assert await sights(rig, reboot) == {reboot: "web-2", preempt: None}
    await rig.ask(OLD, source="127.0.1.12")
    await rig.ask(source="127.0.1.11")
    await rig.ask(source="127.0.1.13")
    assert await sights(rig, preempt) == {reboot: "web-2", preempt: "web-1"}


async def test_an_event_that_only_a_version_hides_is_reported_once_it_is_shown(rig: Rig) -> None:
    """Also if the document of the other version was made first, and is not made again."""
    await rig.ask()
    preempt = await rig.schedule("web-0", EventType.PREEMPT)
    for source in ("127.0.1.12", "127.0.1.13"):
        await rig.ask(OLD, source=source)
    assert (await rig.store.read(rig.web.id)).events[preempt].sight is None
    await rig.ask(headers={"Metadata": "true", "Connection": "close"}, source="127.0.1.11")
    assert await sights(rig, preempt) == {preempt: "web-1"}


async def test_an_outage_of_the_store_swallows_who_saw_an_event(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is for the history only: the poll is answered, and nothing breaks (see conftest.py)."""
    await rig.ask()
    id = await rig.schedule()
    refused: list[Command] = []

    async def down(_: ScopeId, command: Command, **__: Any) -> Any:
        refused.append(command)
        raise StoreDown("gone")

    with monkeypatch.context() as outage:
        outage.setattr(rig.engine, "submit", down)
        assert (await rig.ask()).shows(id)
        assert rig.server is not None
        async with asyncio.timeout(HANG_S):
            while rig.server._state._tasks or not refused:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    assert [type(each) for each in refused] == [ReportSeen]


async def sights(rig: Rig, until_seen: EventId) -> dict[EventId, str | None]:
    """Who was shown each event first, once this one has been seen."""
    async with asyncio.timeout(HANG_S):
        while (await rig.store.read(rig.web.id)).events[until_seen].sight is None:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    events = (await rig.store.read(rig.web.id)).events.values()
    return {each.id: each.sight.by if each.sight else None for each in events}


async def test_seeing_changes_nothing_that_an_instance_can_see(rig: Rig) -> None:
    await rig.ask()
    await rig.schedule()
    first = await rig.ask()
    again = await rig.ask()
    assert first.body == again.body
    assert first.headers["etag"] == again.headers["etag"]


async def test_polls_are_counted_for_each_instance_with_their_client(rig: Rig) -> None:
    for _ in range(3):
        await rig.ask(headers={"Metadata": "true", "User-Agent": "drainer/2.1"})
    await rig.ask(source="127.0.1.11")
    views = rig.engine.views
    web_0 = views.member(rig.web.id, InstanceName("web-0"))
    web_1 = views.member(rig.web.id, InstanceName("web-1"))
    assert web_0 is not None
    assert web_1 is not None
    assert (web_0.polls, web_0.agent) == (3, "drainer/2.1")
    assert (web_1.polls, web_1.agent) == (1, "")
    views.sample(100.0, 6.0)
    assert (web_0.per_minute, web_0.last_s) == (30.0, 100.0)
    views.sample(106.0, 6.0)
    assert web_0.last_s == 100.0
    assert (await rig.ask(PATH)).status == 200
