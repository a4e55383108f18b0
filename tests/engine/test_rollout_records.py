"""What is remembered of rollouts is of the store's present past, whenever it stepped back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant, later
from fairwarning.core.rollouts.model import Rollout, rollout_id
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.engine.rollout_records import KIND, RolloutRecords
from tests.core.builders import event_id
from tests.core.rollouts.test_advance import MONDAY
from tests.engine.harness import ME
from tests.engine.rolling import REBOOT
from tests.engine.shared_store import SharedStore
from tests.support.patience import HANG_S

ROLLOUT = Rollout(
    id=rollout_id(MONDAY, event_id(1)), spec=REBOOT, created_ms=MONDAY, created_by=ME, steps=()
)
LATER = later(MONDAY, 3 * DAY_MS)


class SlowAnswer:
    """The first answer of a store's method is there, and comes when the test lets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: SharedStore, name: str) -> None:
        self.is_there, self._gate = asyncio.Event(), asyncio.Event()
        real = getattr(store, name)

        async def call(*args: Any, **named: Any) -> Any:
            answer = await real(*args, **named)
            if not self.is_there.is_set():
                self.is_there.set()
                await self._gate.wait()
            return answer

        monkeypatch.setattr(store, name, call)

    def come(self) -> None:
        self._gate.set()


async def test_a_rollout_of_the_same_revision_is_read_anew() -> None:
    store = SharedStore(VirtualClock())
    records = RolloutRecords(store)
    await records.keep(ROLLOUT, expected=0, by=ME)
    saved = store.save()
    await records.keep(replace(ROLLOUT, outcome="lost"), expected=1, by=ME)
    assert (await records.find(ROLLOUT.id)).rollout.outcome == "lost"
    store.restore(saved)
    await RolloutRecords(store).keep(replace(ROLLOUT, outcome="new"), expected=1, by=ME)
    records.forget()
    assert (await records.find(ROLLOUT.id)).rollout.outcome == "new"


@pytest.mark.parametrize("way", ["find", "page", "unfinished"])
async def test_what_was_read_of_a_lost_past_is_not_remembered(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SharedStore(VirtualClock())
    records = RolloutRecords(store)
    ways: dict[str, Callable[[], Awaitable[object]]] = {
        "find": lambda: records.find(ROLLOUT.id),
        "page": lambda: records.page("", 9),
        "unfinished": lambda: records.unfinished(LATER),
    }
    await records.keep(ROLLOUT, expected=0, by=ME)
    saved = store.save()
    await records.keep(replace(ROLLOUT, outcome="lost"), expected=1, by=ME)
    answer = SlowAnswer(monkeypatch, store, "record" if way == "find" else "records")
    reading = asyncio.ensure_future(ways[way]())
    async with asyncio.timeout(HANG_S):
        await answer.is_there.wait()
    store.restore(saved)
    await RolloutRecords(store).keep(replace(ROLLOUT, outcome="new"), expected=1, by=ME)
    records.forget()
    answer.come()
    await reading
    assert (await records.find(ROLLOUT.id)).rollout.outcome == "new"


async def test_an_end_in_a_lost_past_hides_no_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SharedStore(VirtualClock())
    records = RolloutRecords(store)
    await records.keep(ROLLOUT, expected=0, by=ME)
    saved = store.save()
    await records.keep(replace(ROLLOUT, ended_ms=MONDAY), expected=1, by=ME)
    answer = SlowAnswer(monkeypatch, store, "records")
    reading = asyncio.ensure_future(records.unfinished(LATER))
    async with asyncio.timeout(HANG_S):
        await answer.is_there.wait()
    store.restore(saved)
    records.forget()
    answer.come()
    await reading
    assert [kept.rollout for kept in await records.unfinished(LATER)] == [ROLLOUT]


async def test_a_rollout_of_a_node_whose_clock_is_behind_is_found() -> None:
    store = SharedStore(VirtualClock())
    records = RolloutRecords(store)
    await records.keep(ROLLOUT, expected=0, by=ME)
    now = later(MONDAY, MINUTE_MS)
    assert [kept.rollout for kept in await records.unfinished(now)] == [ROLLOUT]
    behind = replace(ROLLOUT, id=rollout_id(Instant(MONDAY - HOUR_MS), event_id(2)))
    await RolloutRecords(store).keep(behind, expected=0, by=ME)
    assert [kept.rollout for kept in await records.unfinished(now)] == [ROLLOUT, behind]


async def test_a_rollout_that_is_over_is_not_kept_in_memory() -> None:
    store = SharedStore(VirtualClock())
    records = RolloutRecords(store)
    await records.keep(ROLLOUT, expected=0, by=ME)
    await records.find(ROLLOUT.id)
    await records.keep(replace(ROLLOUT, ended_ms=MONDAY), expected=1, by=ME)
    assert (await records.find(ROLLOUT.id)).rollout.ended_ms == MONDAY
    assert records._read == {}


@pytest.mark.parametrize("body", ["{", '{"id":"\\ud800"}', '{"id":"\ud800"}'])
async def test_a_record_that_cannot_be_read_is_an_outage_and_says_what_to_do(body: str) -> None:
    store = SharedStore(VirtualClock())
    records = RolloutRecords(store)
    await records.keep(ROLLOUT, expected=0, by=ME)
    ((kind, key),) = [(each.kind, each.key) for each in await store.records(KIND, limit=9)]
    await store.keep(kind, key, body, by=ME)
    with pytest.raises(StoreDown, match="restore"):
        await records.find(ROLLOUT.id)
