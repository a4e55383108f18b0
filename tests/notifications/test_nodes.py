"""Restarts, several nodes on one store, and nodes that die at the worst moment."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, later
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Position, Record, StoreDown
from fairwarning.notifications.delivery import LEASE_MS, taken_by
from fairwarning.notifications.dispatcher import Notifications
from fairwarning.notifications.model import Delivery, Filters, Message, Outcome, Target
from fairwarning.notifications.records import NotificationRecords
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.sqlite import SqliteStore
from tests.engine.harness import ME
from tests.notifications.receiver import HANG, receiving
from tests.notifications.rig import (
    NotificationRig,
    SharedStore,
    WatchedSender,
    notification_rig,
)
from tests.support.patience import HANG_S

SCHEDULED = Filters(kinds=("Scheduled",))


class DyingStore(SharedStore):
    """Stops answering right before the next write of this kind, or right after it."""

    dies_before = ""
    dies_after = ""
    is_down = False

    async def keep(self, kind: str, key: str, body: str, **named: object) -> Record:
        if self.is_down or self.dies_before == kind:
            self.is_down = True
            raise StoreDown("switched off by the test")
        record = await super().keep(kind, key, body, **named)  # type: ignore[arg-type]
        self.is_down = self.dies_after == kind
        return record

    def come_back(self) -> None:
        self.dies_before = self.dies_after = ""
        self.is_down = False


class UnreadableStore(MemoryStore):
    """Of one node, so that nobody looks again unless he must."""

    is_down = False

    async def record(self, kind: str, key: str) -> Record | None:
        if self.is_down:
            raise StoreDown("switched off by the test")
        return await super().record(kind, key)


def kill(notifications: Notifications) -> None:
    """As kill -9 leaves it: no lease is given back."""
    assert notifications._keeper.task is not None
    notifications._keeper.task.cancel()
    for worker, task in notifications._workers.values():
        worker._stops = True
        task.cancel()
    notifications._workers = {}


async def test_a_restart_goes_on_where_it_was_and_repeats_nothing(tmp_path: Path) -> None:
    clock = VirtualClock()
    store = SqliteStore(tmp_path / "fw.db", clock)
    await store.open()
    async with notification_rig(store, clock) as rig, receiving() as receiver:
        await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        ids = [await rig.reboot("web-0")]
        await rig.sender.idle()
        await rig.stop()
        ids.append(await rig.reboot("web-1"))
        await rig.node()
        await rig.sender.idle()
        ids.append(await rig.reboot("web-2"))
        await rig.sender.idle()
        assert [each.json["subject"] for each in receiver.requests] == ids
    await store.close()


async def test_what_waits_for_another_try_survives_a_restart() -> None:
    status = [500]
    async with notification_rig() as rig, receiving(lambda _: status[0]) as receiver:
        await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        await rig.reboot("web-0")
        await rig.sender.idle()
        await rig.stop()
        status[0] = 200
        await rig.clock.advance(MINUTE_MS)
        await rig.node()
        await rig.pass_time(HOUR_MS)
        assert len(receiver.requests) == 2


@pytest.mark.parametrize("nodes", [2, 3])
async def test_several_nodes_send_each_message_once(nodes: int) -> None:
    async with shared() as rig, receiving() as receiver:
        running = [await rig.node() for _ in range(nodes)]
        await rig.webhook(running[0], receiver.url, filters=SCHEDULED)
        await rig.pass_time(MINUTE_MS)
        ids = {await rig.reboot(f"web-{number}") for number in range(4)}
        await rig.pass_time(HOUR_MS)
        assert len(receiver.requests) == 4
        assert {each.json["subject"] for each in receiver.requests} == ids


async def test_several_nodes_repeat_a_failed_message_as_often_as_one_would() -> None:
    async with shared() as rig, receiving(lambda _: 500) as receiver:
        first, _ = await rig.node(), await rig.node()
        await rig.webhook(first, receiver.url, filters=SCHEDULED)
        await rig.reboot("web-0")
        await rig.pass_time(24 * HOUR_MS)
        assert len(receiver.requests) == 8
        assert len(await first.dead_letters()) == 1


async def test_another_node_takes_over_when_the_lease_of_a_dead_one_has_run_out() -> None:
    answers = iter([HANG])
    async with shared() as rig, receiving(lambda _: next(answers, 200)) as receiver:
        first = await rig.node()
        await rig.webhook(first, receiver.url, filters=SCHEDULED)
        await rig.reboot("web-0")
        await receiver.has(1)
        kill(first)
        await asyncio.sleep(0)
        await rig.node()
        await rig.pass_time(LEASE_MS - 1_000)
        assert len(receiver.requests) == 1
        await rig.pass_time(2_000)
        assert len(receiver.requests) == 2
        assert receiver.requests[0].body == receiver.requests[1].body


async def test_a_store_of_one_node_needs_no_patience_after_a_crash() -> None:
    answers = iter([HANG])
    async with notification_rig() as rig, receiving(lambda _: next(answers, 200)) as receiver:
        first = await rig.node()
        await rig.webhook(first, receiver.url, filters=SCHEDULED)
        await rig.reboot("web-0")
        await receiver.has(1)
        kill(first)
        await asyncio.sleep(0)
        await rig.node()
        await receiver.has(2)


async def test_a_message_that_was_put_aside_before_a_crash_is_not_sent_as_new_too() -> None:
    clock = VirtualClock()
    store = DyingStore(clock)
    async with notification_rig(store, clock) as rig, receiving(lambda _: 500) as receiver:
        first = await rig.node()
        await rig.webhook(first, receiver.url, filters=SCHEDULED)
        store.dies_after = "notification-delivery"
        await rig.reboot("web-0")
        await rig.sender.idle()
        kill(first)
        store.come_back()
        await rig.node()
        await rig.pass_time(24 * HOUR_MS)
        assert len(receiver.requests) == 8


async def test_an_outage_of_the_store_loses_nothing() -> None:
    clock = VirtualClock()
    store = DyingStore(clock)
    async with notification_rig(store, clock) as rig, receiving() as receiver:
        await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        store.dies_before = "notification-cursor"
        await rig.reboot("web-0")
        await rig.pass_time(MINUTE_MS)
        assert not receiver.requests
        store.come_back()
        await rig.pass_time(MINUTE_MS)
        assert len(receiver.requests) == 1


async def test_a_node_that_starts_in_an_outage_reads_its_cursor_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    store = UnreadableStore(clock)
    async with notification_rig(store, clock) as rig, receiving() as receiver:
        first = await rig.node()
        await rig.webhook(first, receiver.url, filters=SCHEDULED)
        await rig.stop()
        store.is_down = True
        await rig.node()
        await rig.pass_time(2_000)
        store.is_down = False
        await rig.pass_time(MINUTE_MS)
        assert "stumbled" not in caplog.text
        await rig.reboot("web-0")
        await receiver.has(1)


async def test_a_clock_that_is_ahead_takes_nothing_from_who_is_telling() -> None:
    """Its own clock says that the lease is over; the store's says that it is not."""
    answers = iter([HANG])
    async with shared() as rig, receiving(lambda _: next(answers, 200)) as receiver:
        await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        await rig.reboot("web-0")
        await receiver.has(1)
        ahead = VirtualClock(later(rig.clock.now(), LEASE_MS + 1))
        other = Notifications(store=rig.store, clock=ahead, sender=WatchedSender(ahead))
        await other.start()
        await ahead.advance(LEASE_MS // 2)
        assert len(receiver.requests) == 1
        await other.stop()


class LateLists(MemoryStore):
    """Of the lists of targets that are asked for, the next comes only when the test says so."""

    holds_back = False

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.asked, self.added, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def records(self, kind: str, **named: Any) -> list[Record]:
        found = await super().records(kind, **named)
        if kind == "notification-target" and self.holds_back:
            self.holds_back = False
            self.asked.set()
            await self.go_on.wait()
        return found

    async def keep(self, kind: str, key: str, body: str, **named: Any) -> Record:
        record = await super().keep(kind, key, body, **named)
        if kind == "notification-target":
            self.added.set()
        return record


async def test_an_older_list_of_targets_that_comes_late_ends_nobody() -> None:
    """A target is made while another list is on its way that does not have it yet."""
    clock = VirtualClock()
    store = LateLists(clock)
    async with notification_rig(store, clock) as rig, receiving() as receiver:
        notifications = await rig.node()
        store.holds_back = True
        late = asyncio.create_task(notifications._refresh())
        await store.asked.wait()
        making = asyncio.create_task(rig.webhook(notifications, receiver.url, filters=SCHEDULED))
        await store.added.wait()
        for _ in range(9):  # With the mend it waits for its turn; without it, it is done by now.
            await asyncio.sleep(0)
        store.go_on.set()
        await asyncio.gather(late, making)
        await rig.reboot("web-0")
        await receiver.has(1)


async def test_a_target_made_on_one_node_is_told_by_another_too() -> None:
    async with shared() as rig, receiving() as receiver:
        first, _ = await rig.node(), await rig.node()
        await rig.webhook(first, receiver.url, filters=SCHEDULED)
        kill(first)
        await rig.reboot("web-0")
        await rig.pass_time(2 * LEASE_MS)
        assert len(receiver.requests) == 1


async def test_unwanted_entries_move_the_cursor_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that a restart need not read them all again."""
    monkeypatch.setattr("fairwarning.notifications.delivery.UNTOLD_MAX", 5)
    async with notification_rig() as rig, receiving() as receiver:
        wanted = Filters(kinds=("Failed",))
        target = await rig.webhook(await rig.node(), receiver.url, filters=wanted)
        end = await rig.store.end()
        await rig.reboot("web-0")
        await rig.clock.advance(HOUR_MS)
        held = await NotificationRecords(rig.store).cursor(target.id)
        assert held is not None
        unread = await rig.store.journal(after=held.cursor.position, limit=100)
        assert len(unread) < 5 < len(await rig.store.journal(after=end, limit=100))


async def test_unwanted_entries_move_no_cursor_that_another_node_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That would take its lease away while it sends, and a third node could send the same."""
    monkeypatch.setattr("fairwarning.notifications.delivery.UNTOLD_MAX", 1)
    async with shared() as rig, receiving() as receiver:
        wanted = Filters(kinds=("Failed",))
        target = await rig.webhook(await rig.node(), receiver.url, filters=wanted)
        records = NotificationRecords(rig.store)
        held = await records.cursor(target.id)
        assert held is not None
        theirs = await records.move(
            target.id, held, taken_by("another", held.cursor, rig.clock.now())
        )
        await rig.reboot("web-0")
        await rig.pass_time(LEASE_MS - 1)
        assert await records.cursor(target.id) == theirs
        await rig.pass_time(LEASE_MS)
        assert await records.cursor(target.id) != theirs


async def test_whoever_has_told_all_leaves_the_target_to_the_others() -> None:
    """They need not wait until its lease has run out."""
    async with shared() as rig, receiving() as receiver:
        first = await rig.node()
        await rig.webhook(first, receiver.url, filters=SCHEDULED)
        await rig.reboot("web-0")
        await rig.sender.idle()
        await rig.stop()
        await rig.node()
        await rig.reboot("web-1")
        await rig.pass_time(LEASE_MS // 2)
        assert len(receiver.requests) == 2


def shared() -> AbstractAsyncContextManager[NotificationRig]:
    clock = VirtualClock()
    return notification_rig(SharedStore(clock), clock)


async def test_a_target_that_takes_nothing_hears_nothing_new_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The journal holds the rest, however much that is."""
    monkeypatch.setattr("fairwarning.notifications.records.WAITING_MAX", 2)
    status = [500]
    async with (
        asyncio.timeout(HANG_S),
        notification_rig() as rig,
        receiving(lambda _: status[0]) as receiver,
    ):
        await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        ids = [await rig.reboot(f"web-{number}") for number in range(4)]
        await rig.sender.idle()
        assert [each.json["subject"] for each in receiver.requests] == ids[:2]
        assert len(await rig.store.records("notification-delivery", limit=9)) == 2
        status[0] = 200
        await rig.pass_time(MINUTE_MS)
        assert sorted(each.json["subject"] for each in receiver.requests[2:]) == ids


async def test_what_waits_already_counts_when_much_is_new_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairwarning.notifications.records.WAITING_MAX", 2)
    async with (
        asyncio.timeout(HANG_S),
        notification_rig() as rig,
        receiving(lambda _: 500) as receiver,
    ):
        await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        ids = [await rig.reboot("web-0")]
        await rig.sender.idle()
        await rig.stop()
        ids += [await rig.reboot(f"web-{number}") for number in range(1, 4)]
        await rig.node()
        await rig.sender.idle()
        assert [each.json["subject"] for each in receiver.requests] == ids[:2]
        assert len(await rig.store.records("notification-delivery", limit=9)) == 2


async def test_what_was_put_aside_for_a_target_that_another_node_removed_is_dropped() -> None:
    async with shared() as rig:
        target = await rig.webhook(await rig.node(), "http://127.0.0.1:9/", filters=SCHEDULED)
        records = NotificationRecords(rig.store)
        await records.remove_target(target, by=ME, why="")
        await records.clear(target.id)
        message = Message(id="m", title="t", text="t", body="{}")
        late = Delivery(
            id="late",
            target_id=target.id,
            position=Position("1"),
            message=message,
            attempts=1,
            next_try_ms=later(rig.clock.now(), HOUR_MS),
            last_error="answered 500",
        )
        await records.put_waiting(late)
        await rig.reboot("web-0")
        await rig.sender.idle()
        assert await rig.store.records("notification-delivery", limit=9) == []


async def test_a_lease_lasts_as_long_as_there_is_something_to_tell() -> None:
    """Each try takes long, and all of them together longer than a lease."""
    left: list[int] = []
    clock = VirtualClock()
    store = SharedStore(clock)

    class Slow:
        async def problem(self, target: Target) -> str | None:
            return None

        async def send(self, target: Target, message: Message) -> Outcome:
            held = await NotificationRecords(store).cursor(target.id)
            assert held is not None
            left.append(held.cursor.lease_until_ms - clock.now())
            clock.step(LEASE_MS // 2 - 1)
            return Outcome()

        async def close(self) -> None:
            pass

    async with notification_rig(store, clock) as rig:
        first = Notifications(store=store, clock=clock, sender=Slow())
        await rig.webhook(first, "http://127.0.0.1:9/", filters=SCHEDULED)
        for number in range(4):
            await rig.reboot(f"web-{number}")
        await first.start()
        await clock.settle()
        await first.stop()
    assert len(left) == 4
    assert min(left) >= LEASE_MS // 2
