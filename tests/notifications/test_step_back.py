"""Notifications on a store that steps back: what is new is told, and nothing stops."""

from fairwarning.core.instants import MINUTE_MS
from fairwarning.engine.clocks import VirtualClock
from fairwarning.notifications.delivery import RECHECK_MS
from fairwarning.notifications.model import Filters
from fairwarning.notifications.records import CURSOR, TARGET
from tests.engine.harness import ME
from tests.engine.shared_store import SharedStore
from tests.notifications.receiver import receiving
from tests.notifications.rig import notification_rig

SCHEDULED = Filters(kinds=("Scheduled",))


async def test_what_is_new_is_told_though_unwanted_entries_had_been_passed() -> None:
    """They are gone, and their positions are given to entries that the target wants."""
    clock = VirtualClock()
    store = SharedStore(clock)
    async with notification_rig(store, clock) as rig, receiving() as receiver:
        await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        first = await rig.reboot("web-0")
        await rig.pass_time(MINUTE_MS)
        saved = store.save()
        await rig.approve(first, "web-0")
        await rig.pass_time(5 * MINUTE_MS)
        clock.step(1)
        store.restore(saved)
        ids = [await rig.reboot(name) for name in ("web-1", "web-2", "web-3")]
        await rig.pass_time(MINUTE_MS)
        assert [each.json["subject"] for each in receiver.requests] == [first, *ids]


async def test_a_cursor_of_the_same_revision_may_be_elsewhere() -> None:
    clock = VirtualClock()
    store = SharedStore(clock)
    async with notification_rig(store, clock) as rig, receiving() as receiver:
        target = await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        saved = store.save()
        lost = await rig.reboot("web-0")
        await rig.pass_time(MINUTE_MS)
        cursor = store._records[CURSOR, target.id]
        store.restore(saved)
        # Another node has moved it on as often since.
        before = saved["_records"][CURSOR, target.id]
        while store._records[CURSOR, target.id].revision < cursor.revision:
            await store.keep(CURSOR, target.id, before.body, by=ME)
        id = await rig.reboot("web-1")
        await rig.pass_time(MINUTE_MS)
        assert [each.json["subject"] for each in receiver.requests] == [lost, id]


async def test_a_target_that_is_lost_ends_and_one_that_is_back_is_told_again() -> None:
    clock = VirtualClock()
    store = SharedStore(clock)
    async with notification_rig(store, clock) as rig, receiving() as receiver:
        first = await rig.reboot("web-3")
        without = store.save()
        target = await rig.webhook(await rig.node(), receiver.url, filters=SCHEDULED)
        await rig.pass_time(MINUTE_MS)
        there = store.save()
        # An unwanted line is passed, so that its loss is noticed by the worker itself.
        await rig.approve(first, "web-3")
        await rig.pass_time(MINUTE_MS)
        store.restore(without)
        await rig.reboot("web-0")
        await rig.pass_time(MINUTE_MS)
        assert not receiver.requests
        assert (TARGET, target.id) not in store._records
        store.restore(there)
        await rig.pass_time(MINUTE_MS)
        id = await rig.reboot("web-1")
        await rig.pass_time(MINUTE_MS)
        assert [each.json["subject"] for each in receiver.requests] == [id]


async def test_a_target_whose_cursor_was_away_for_a_moment_is_told_again() -> None:
    clock = VirtualClock()
    async with notification_rig(SharedStore(clock), clock) as rig, receiving() as receiver:
        target = await rig.webhook(await rig.node(), receiver.url)
        before = await rig.store.record(CURSOR, target.id)
        assert before is not None
        await rig.store.drop(CURSOR, target.id, by=ME)
        await rig.pass_time(2 * RECHECK_MS)
        await rig.store.keep(CURSOR, target.id, before.body, by=ME)
        await rig.pass_time(2 * RECHECK_MS)
        await rig.reboot("web-0")
        await rig.pass_time(2 * RECHECK_MS)
        assert receiver.kinds == ["scheduled"]
