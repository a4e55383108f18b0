"""A virtual clock that a restart does not turn back."""

from pathlib import Path

import pytest

from fairwarning.core.instants import DAY_MS, HOUR_MS, SECOND_MS, later
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api.routes.clock import NOW_MS_MAX, resume_clock, save_position
from fairwarning.stores.memory import MemoryStore
from tests.operator_api.rig import ME, running


async def test_a_virtual_clock_goes_on_where_it_stood(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/fw.db"
    async with running(store_url=url) as rig:
        stood = await rig.post("/clock/advance", {"by": "400d"})
    async with running(store_url=url) as rig:
        assert await rig.get("/clock") == stood


async def test_a_move_that_was_stored_and_broke_off_is_made_up_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(_: object) -> None:
        raise StoreDown("away")

    async with running() as rig:
        before = rig.clock.now()
        with monkeypatch.context() as patched:
            patched.setattr(rig.clock, "advance_to", broken)
            await rig.post("/clock/advance", {"by": "1h"}, 503)
        assert rig.clock.now() == before
        await rig.post("/clock/advance", {"by": "1s"})
        assert rig.clock.now() == later(before, HOUR_MS + SECOND_MS)


async def test_a_real_clock_cannot_be_moved(tmp_path: Path) -> None:
    async with running(is_clock_virtual=False) as rig:
        problem = await rig.post("/clock/advance", {"by": "1m"}, 409)
        assert problem["code"] == "clock-is-real"
        assert (await rig.get("/clock"))["virtual"] is False


async def test_it_stands_neither_before_what_has_happened_nor_before_where_it_was_put() -> None:
    """A clock that ran by itself was put nowhere, but left lines in the journal."""
    begins = VirtualClock().now()
    ahead = VirtualClock(later(begins, HOUR_MS))
    store = MemoryStore(ahead)
    note = Noted(subject="x", action="made")
    await store.keep("x", "y", "{}", note=note, by=ME)
    clock = VirtualClock(begins)
    await resume_clock(clock, store)
    assert clock.now() == ahead.now()
    await save_position(later(begins, DAY_MS), store, by=ME)
    await resume_clock(clock, store)
    assert clock.now() == later(begins, DAY_MS)
    late = VirtualClock(later(begins, 2 * DAY_MS))
    await resume_clock(late, store)
    assert late.now() == later(begins, 2 * DAY_MS)


async def test_time_ends_with_the_year_9000() -> None:
    async with running() as rig:
        rig.clock.step(NOW_MS_MAX - SECOND_MS - rig.clock.now())
        for by, status in (("2s", 422), ("1s", 200), ("1s", 422), ("0s", 200)):
            await rig.post("/clock/advance", {"by": by}, status)
        assert rig.clock.now() == NOW_MS_MAX
        problem = await rig.post("/clock/advance", {"by": "3661d"}, 422)
        assert "ten years" in problem["detail"]
