"""How long an idempotency key and its answer are kept."""

import asyncio
from typing import Any

import msgspec
import pytest

from fairwarning.core.instants import DAY_MS, later
from fairwarning.core.model import ENGINE
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.operator_api import expired_records
from fairwarning.operator_api.expired_records import RecordCleanup, delete_old_keys
from fairwarning.operator_api.idempotency import KIND, Kept
from fairwarning.stores.memory import MemoryStore
from tests.operator_api.rig import Rig
from tests.support.flaky import Flaky
from tests.support.patience import HANG_S

BODY = {"type": "Reboot", "targets": ["web-0"]}


async def test_a_key_is_kept_for_a_day_and_then_forgotten(rig: Rig) -> None:
    before = SystemClock().now()
    await rig.post("/events", BODY, 201, idempotency_key="a")
    await delete_old_keys(rig.node.store, later(before, DAY_MS))
    assert len(await rig.node.store.records(KIND, limit=9)) == 1
    await delete_old_keys(rig.node.store, later(SystemClock().now(), DAY_MS + 1))
    assert await rig.node.store.records(KIND, limit=9) == []


@pytest.mark.parametrize("is_swept", [False, True])
async def test_a_key_whose_day_is_over_stands_for_new_work(rig: Rig, is_swept: bool) -> None:
    first = await rig.post("/events", BODY, 201, idempotency_key="a")
    await rig.post(f"/events/{first['id']}/cancel")
    (record,) = await rig.node.store.records(KIND, limit=9)
    kept = msgspec.json.decode(record.body, type=Kept)
    old = msgspec.structs.replace(kept, began_ms=later(kept.began_ms, -DAY_MS - 1))
    await rig.node.store.keep(KIND, record.key, msgspec.json.encode(old).decode(), by=ENGINE)
    if is_swept:
        await delete_old_keys(rig.node.store, SystemClock().now())
    other = {**BODY, "type": "Freeze"}
    second = await rig.post("/events", other, 201, idempotency_key="a")
    assert second["id"] != first["id"]
    assert second["phase"] == "scheduled"


async def test_a_key_that_is_taken_anew_while_old_ones_are_forgotten_stays(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = rig.node.store
    await rig.post("/events", BODY, 201, idempotency_key="a")
    (record,) = await store.records(KIND, limit=9)
    real = store.drop

    async def drop(*given: Any, **named: Any) -> Any:
        await store.keep(KIND, record.key, record.body, by=ENGINE)
        return await real(*given, **named)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(store, "drop", drop)
        await delete_old_keys(store, later(SystemClock().now(), DAY_MS + 1))
    assert [each.key for each in await store.records(KIND, limit=9)] == [record.key]


async def test_a_large_answer_is_not_kept_and_what_it_tells_of_is_not_done_again(rig: Rig) -> None:
    text = "test = true\n" + "".join(f'[[vm]]\nname = "vm-{n}"\n' for n in range(200))
    headers = {"Content-Type": "application/toml", "Idempotency-Key": "large"}
    first = await rig.api.post("/fleet", content=text, headers=headers)
    assert len(Rig.check(first, 200)["changes"]) >= 200
    again = await rig.api.post("/fleet", content=text, headers=headers)
    assert Rig.check(again, 409)["code"] == "answer-not-kept"
    kept = await rig.node.store.records("idempotency", limit=10)
    assert max(len(each.body) for each in kept) < 20_000


async def test_old_keys_are_forgotten_after_an_outage_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expired_records, "PAUSE_S", 0)
    wall = VirtualClock()
    store = MemoryStore(wall)
    kept = Kept(asked="", seed="", began_ms=wall.now())
    await store.keep(KIND, "old", msgspec.json.encode(kept).decode(), by=ENGINE)
    wall.step(2 * DAY_MS)
    flaky = Flaky(store)
    cleanup = RecordCleanup(flaky.store, wall)
    with flaky.failing(range(3)):
        cleanup.start()
        async with asyncio.timeout(HANG_S):
            while await store.record(KIND, "old") is not None:  # noqa: ASYNC110 (no time passes)
                await asyncio.sleep(0)
    await cleanup.stop()
    assert len(flaky.calls) > 3


async def test_a_record_that_cannot_be_read_does_not_end_the_cleanup(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(expired_records, "PAUSE_S", 0)
    wall = VirtualClock()
    store = MemoryStore(wall)
    kept = Kept(asked="", seed="", began_ms=wall.now())
    await store.keep(KIND, "a", "of a newer version", by=ENGINE)
    await store.keep(KIND, "b", msgspec.json.encode(kept).decode(), by=ENGINE)
    wall.step(2 * DAY_MS)
    cleanup = RecordCleanup(store, wall)
    cleanup.start()
    async with asyncio.timeout(HANG_S):
        while "stumbled and goes on" not in caplog.text:  # noqa: ASYNC110 (no time passes)
            await asyncio.sleep(0)
        await store.drop(KIND, "a", by=ENGINE)
        while await store.record(KIND, "b") is not None:  # noqa: ASYNC110 (no time passes)
            await asyncio.sleep(0)
    await cleanup.stop()
