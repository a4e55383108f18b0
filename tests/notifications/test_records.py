"""Records of targets and deliveries: what cannot be read, and what belongs to whom."""

import pytest
from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Position, StoreDown
from fairwarning.notifications.model import Delivery, Message
from fairwarning.notifications.records import DEAD, TARGET, NotificationRecords
from fairwarning.stores.memory import MemoryStore
from tests.engine.harness import ME

LETTER = Delivery(
    id="a", target_id="t1", position=Position("1"), attempts=1, next_try_ms=Instant(0),
    last_error="", message=Message(id="1", title="", text="", body=""),
)  # fmt: skip


async def test_a_damaged_record_is_an_outage_that_quotes_nothing() -> None:
    store = MemoryStore(VirtualClock())
    await store.keep(TARGET, "t1", '{"secret": "hunter2"', by=ME)
    records = NotificationRecords(store)
    for read in (records.targets(), records.target("t1")):
        with pytest.raises(StoreDown, match="notification-target t1 cannot be read") as caught:
            await read
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert await records.target("t2") is None


async def test_what_waits_for_one_target_is_not_anothers() -> None:
    """Neither if the name of one begins like that of the other."""
    records = NotificationRecords(MemoryStore(VirtualClock()))
    for target, id in (("t1", "b"), ("t1", "a"), ("t10", "c"), ("t0", "d")):
        await records.put_waiting(replace(LETTER, target_id=target, id=id))
    assert [each.id for each in await records.waiting("t1")] == ["a", "b"]
    assert await records.is_waiting(replace(LETTER, id="b"))
    assert not await records.is_waiting(replace(LETTER, id="c"))


async def test_of_a_removed_target_all_is_deleted_and_nothing_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairwarning.notifications.records.WAITING_MAX", 2)
    store = MemoryStore(VirtualClock())
    records = NotificationRecords(store)
    for number in range(5):
        target = "t1" if number % 2 else "t2"
        await records.put_dead(replace(LETTER, target_id=target, id=f"{number}"))
    await records.clear("t1")
    assert [each.key for each in await store.records(DEAD, limit=10)] == ["0", "2", "4"]
