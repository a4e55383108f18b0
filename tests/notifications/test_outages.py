"""Notifications go on after an outage at any call to the store, and repeat nothing that arrived."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import pytest

from fairwarning.core.commands import Cancel
from fairwarning.core.instants import DAY_MS, MINUTE_MS
from fairwarning.core.model import EventId
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.notifications.dispatcher import Notifications
from fairwarning.notifications.model import (
    Filters,
    Message,
    Outcome,
    Target,
    TargetDraft,
    TargetKind,
)
from fairwarning.stores.memory import MemoryStore
from tests.engine.harness import ME
from tests.notifications.receiver import receiving
from tests.notifications.rig import NotificationRig, SharedStore, notification_rig
from tests.support.flaky import Flaky, every_call_fails

DRAFT = TargetDraft(
    name="hook",
    kind=TargetKind.WEBHOOK,
    url="http://127.0.0.1:9/",
    filters=Filters(kinds=("Scheduled", "Cancelled")),
)
TRIES = 8
"""One, and seven more with growing pauses."""


class Receiver:
    """In place of the network: notes what arrives, and refuses what it is told to."""

    def __init__(
        self, refuses: Callable[[Message], bool] = lambda _: False, *, is_final: bool = False
    ) -> None:
        self.arrived: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._refuses = refuses
        self._is_final = is_final

    async def problem(self, target: Target) -> str | None:
        return None

    async def send(self, target: Target, message: Message) -> Outcome:
        if self._refuses(message):
            self.refused[message.id] += 1
            return Outcome(error="answered 500", is_final=self._is_final)
        self.arrived[message.id] += 1
        return Outcome()

    async def close(self) -> None:
        pass


Failing = Callable[[], AbstractContextManager[None]]
"""While it lasts, the call that is to fail does."""


class World:
    def __init__(
        self, rig: NotificationRig, notifications: Notifications, failing: Failing
    ) -> None:
        self.rig, self.notifications, self.failing = rig, notifications, failing

    async def announce(self) -> list[EventId]:
        """Through the store itself: what happens is not what fails."""
        ids = [await self.rig.reboot("web-0"), await self.rig.reboot("web-1")]
        for id in ids:
            await self.rig.engine.submit(self.rig.scope.id, Cancel(event_id=id), by=ME)
        return ids


async def play(
    story: Callable[[World], Awaitable[None]],
    receiver: Receiver,
    store_kind: type[MemoryStore] = MemoryStore,
    *,
    fails: range = range(0),
    is_late: bool = False,
) -> list[str]:
    clock = VirtualClock()
    store = store_kind(clock)
    flaky = Flaky(store)
    async with notification_rig(store, clock) as rig:
        notifications = Notifications(store=flaky.store, clock=clock, sender=receiver)
        await notifications.start()
        await clock.settle()
        await story(World(rig, notifications, partial(flaky.failing, fails, is_late=is_late)))
        await notifications.stop()
    return flaky.calls


@pytest.mark.parametrize(("store_kind", "every"), [(MemoryStore, 1), (SharedStore, 20)])
@pytest.mark.parametrize("at_once", [1, 3])
async def test_each_message_arrives_once_whichever_call_fails(
    store_kind: type[MemoryStore], every: int, at_once: int
) -> None:
    async def story(world: World) -> None:
        await world.notifications.create(DRAFT, by=ME)
        with world.failing():
            await world.announce()
            await world.rig.clock.advance(2 * MINUTE_MS)

    async def scenario(fails: range, is_late: bool) -> list[str]:
        receiver = Receiver()
        calls = await play(story, receiver, store_kind, fails=fails, is_late=is_late)
        assert sorted(receiver.arrived.values()) == [1] * 4, (fails, is_late, calls)
        return calls

    met = {name async for name in every_call_fails(scenario, at_once=at_once, every=every)}
    assert {"journal", "history", "keep notification-cursor", "record notification-cursor"} <= met


async def test_a_message_that_is_refused_is_tried_as_often_as_the_docs_say() -> None:
    """An outage between a try and the note of it is no reason for another."""

    async def story(world: World) -> None:
        await world.notifications.create(DRAFT, by=ME)
        with world.failing():
            await world.rig.reboot("web-0")
            await world.rig.clock.advance(DAY_MS)

    async def scenario(fails: range, is_late: bool) -> list[str]:
        receiver = Receiver(lambda _: True)
        calls = await play(story, receiver, fails=fails, is_late=is_late)
        assert list(receiver.refused.values()) == [TRIES], (fails, is_late, calls)
        return calls

    met = {name async for name in every_call_fails(scenario)}
    assert {
        "keep notification-delivery",
        "drop notification-delivery",
        "keep notification-dead",
    } <= met


async def test_whoever_removes_a_target_during_an_outage_may_ask_again_and_leaves_nothing() -> None:
    async def story(world: World) -> None:
        target = await world.notifications.create(DRAFT, by=ME)
        await world.rig.reboot("web-0")
        await world.rig.clock.advance(DAY_MS)
        await world.rig.reboot("web-1")
        await world.rig.clock.settle()
        with world.failing():
            for _ in range(2):
                with suppress(StoreDown, Refused):
                    await world.notifications.remove(target.id, by=ME)
        assert await world.notifications.list() == []
        for kind in (
            "notification-cursor",
            "notification-delivery",
            "notification-dead",
            "notification-target",
        ):
            assert await world.rig.store.records(kind, limit=9) == [], kind

    async def scenario(fails: range, is_late: bool) -> list[str]:
        return await play(story, Receiver(lambda _: True), fails=fails, is_late=is_late)

    met = {name async for name in every_call_fails(scenario)}
    assert {"drop notification-target", "drop notification-cursor", "drop notification-dead"} <= met


async def test_whoever_makes_a_target_during_an_outage_has_one_that_hears_or_none() -> None:
    async def story(world: World) -> None:
        with suppress(StoreDown), world.failing():
            await world.notifications.create(DRAFT, by=ME)
        if not await world.notifications.list():
            await world.notifications.create(DRAFT, by=ME)
        assert len(await world.notifications.list()) == 1
        await world.rig.reboot("web-0")
        await world.rig.clock.advance(MINUTE_MS)

    async def scenario(fails: range, is_late: bool) -> list[str]:
        receiver = Receiver()
        calls = await play(story, receiver, fails=fails, is_late=is_late)
        assert list(receiver.arrived.values()) == [1], (fails, is_late, calls)
        return calls

    met = {name async for name in every_call_fails(scenario)}
    assert {
        "keep notification-target",
        "keep notification-cursor",
        "records notification-target",
    } <= met


async def test_a_dead_letter_that_is_tried_again_during_an_outage_arrives() -> None:
    is_refusing = [True]

    async def story(world: World) -> None:
        is_refusing[0] = True
        await world.notifications.create(DRAFT, by=ME)
        await world.rig.reboot("web-0")
        await world.rig.clock.advance(DAY_MS)
        (letter,) = await world.notifications.dead_letters()
        is_refusing[0] = False
        with world.failing():
            for _ in range(2):
                with suppress(StoreDown, Refused):
                    await world.notifications.retry(letter.id)
        await world.rig.clock.advance(MINUTE_MS)
        assert await world.notifications.dead_letters() == []

    async def scenario(fails: range, is_late: bool) -> list[str]:
        receiver = Receiver(lambda _: is_refusing[0])
        calls = await play(story, receiver, fails=fails, is_late=is_late)
        assert 1 <= receiver.arrived.total() <= 2, "asked for twice, at most"
        return calls

    met = {name async for name in every_call_fails(scenario)}
    assert {"keep notification-delivery", "drop notification-dead"} <= met


async def test_a_dead_letter_is_sent_again_whatever_was_lost_when_it_died() -> None:
    """What became of an earlier try does not count for a new one."""
    is_refusing = [True]

    async def story(world: World) -> None:
        is_refusing[0] = True
        await world.notifications.create(DRAFT, by=ME)
        with world.failing():
            await world.rig.reboot("web-0")
            await world.rig.clock.advance(MINUTE_MS)
            with suppress(StoreDown, Refused):
                for letter in await world.notifications.dead_letters():
                    await world.notifications.retry(letter.id)
            await world.rig.clock.advance(MINUTE_MS)
        is_refusing[0] = False
        (letter,) = await world.notifications.dead_letters()
        await world.notifications.retry(letter.id)
        await world.rig.clock.advance(MINUTE_MS)
        assert await world.notifications.dead_letters() == []

    async def scenario(fails: range, is_late: bool) -> list[str]:
        receiver = Receiver(lambda _: is_refusing[0], is_final=True)
        calls = await play(story, receiver, fails=fails, is_late=is_late)
        assert list(receiver.arrived.values()) == [1], (fails, is_late, calls)
        return calls

    met = {name async for name in every_call_fails(scenario)}
    assert {
        "keep notification-cursor",
        "keep notification-dead",
        "drop notification-delivery",
    } <= met


@pytest.mark.parametrize("is_through", [False, True], ids=["plain", "through"])
async def test_a_target_that_is_made_while_the_node_stops_gets_no_worker(
    is_through: bool,
) -> None:
    reached, gate = asyncio.Event(), asyncio.Event()

    class Slow(Receiver):
        async def problem(self, target: Target) -> str | None:
            reached.set()
            await gate.wait()
            return None

    receiver = Slow()
    async with notification_rig() as rig:
        notifications = Notifications(store=rig.store, clock=rig.clock, sender=receiver)
        await notifications.start()
        await rig.clock.settle()
        asked = notifications.through(rig.store) if is_through else notifications
        making = asyncio.create_task(asked.create(DRAFT, by=ME))
        await reached.wait()
        await notifications.stop()
        gate.set()
        await making
        await rig.reboot("web-0")
        await rig.clock.advance(MINUTE_MS)
        assert not receiver.arrived, "a stopped node tells nobody"
        await notifications.start()
        await rig.clock.settle()
        assert receiver.arrived.total() == 1
        await notifications.stop()


async def test_a_try_that_is_under_way_leaves_nothing_of_a_target_that_is_removed() -> None:
    reached, gate = asyncio.Event(), asyncio.Event()

    class Slow(Receiver):
        async def send(self, target: Target, message: Message) -> Outcome:
            reached.set()
            await gate.wait()
            return Outcome(error="answered 500")

    async with notification_rig() as rig:
        notifications = Notifications(store=rig.store, clock=rig.clock, sender=Slow())
        await notifications.start()
        target = await notifications.create(DRAFT, by=ME)
        await rig.reboot("web-0")
        await reached.wait()
        removing = asyncio.create_task(notifications.remove(target.id, by=ME))
        for _ in range(50):  # As far as it comes while the try lasts.
            await asyncio.sleep(0)
        gate.set()
        await removing
        await notifications.stop()
        for kind in (
            "notification-cursor",
            "notification-delivery",
            "notification-dead",
            "notification-target",
        ):
            assert await rig.store.records(kind, limit=9) == [], kind


async def test_a_target_that_is_stored_is_answered_with_its_secret_in_an_outage_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The secret is shown once, so a refusal would lose it. The worker begins after the outage."""
    async with notification_rig() as rig, receiving() as receiver:
        node = await rig.node()
        real, is_down = rig.store.records, False
        keep = rig.store.keep

        async def records(*args: Any, **more: Any) -> Any:
            if is_down:
                raise StoreDown("away")
            return await real(*args, **more)

        async def kept(kind: str, *args: Any, **more: Any) -> Any:
            nonlocal is_down
            found = await keep(kind, *args, **more)
            is_down = kind == "notification-target"
            return found

        monkeypatch.setattr(rig.store, "records", records)
        monkeypatch.setattr(rig.store, "keep", kept)
        target = await rig.webhook(node, receiver.url)
        assert target.secret
        is_down = False
        await rig.pass_time(MINUTE_MS)
        id = await rig.reboot("web-0")
        await rig.sender.idle()
        assert [each.json["subject"] for each in receiver.requests] == [id]
