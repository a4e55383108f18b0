"""A node without the role engine notices whether another one has it."""

import pytest

from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.engine_presence import SILENT_S, EngineBeats, EngineWatch
from tests.engine.shared_store import SharedStore


async def test_an_engine_that_falls_silent_is_missed_and_its_return_is_noticed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = SharedStore(VirtualClock())
    beats, watch = EngineBeats(store), EngineWatch(store)
    for now_s in (0.0, SILENT_S):
        await beats.beat()
        await watch.look(now_s)
        assert watch.is_running
    await watch.look(2 * SILENT_S)
    assert watch.is_running
    for _ in range(2):
        await watch.look(2 * SILENT_S + 1)
        assert not watch.is_running
    await beats.beat()
    await watch.look(2 * SILENT_S + 2)
    assert watch.is_running
    assert [each.message.split(",")[0] for each in caplog.records] == [
        "no node with the role engine is running",
        "a node with the role engine is running again",
    ]


async def test_an_engine_that_never_was_there_is_missed() -> None:
    watch = EngineWatch(SharedStore(VirtualClock()))
    await watch.look(0.0)
    await watch.look(SILENT_S + 1)
    assert not watch.is_running


async def test_an_outage_of_the_store_is_no_absence_of_the_engine() -> None:
    store = SharedStore(VirtualClock())
    beats, watch = EngineBeats(store), EngineWatch(store)
    await beats.beat()
    await watch.look(0.0)
    store.down = {"record", "keep"}
    await beats.beat()
    await watch.look(SILENT_S + 1)
    store.down = set()
    await watch.look(SILENT_S + 2)
    assert watch.is_running
