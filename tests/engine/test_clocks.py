"""Both clocks keep the contract of an alarm; the virtual one knows when everybody rests."""

import asyncio

import pytest

from fairwarning.core.instants import HOUR_MS, Instant, later
from fairwarning.engine import clocks
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.engine.protocols import Clock
from tests.support.patience import HANG_S


@pytest.fixture(params=[SystemClock, VirtualClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


async def test_an_alarm_rung_before_the_wait_does_not_sleep(clock: Clock) -> None:
    alarm = clock.alarm()
    alarm.ring()
    await alarm.wait(later(clock.now(), HOUR_MS))


async def test_an_alarm_for_the_past_does_not_sleep(clock: Clock) -> None:
    await clock.alarm().wait(clock.now())


async def test_a_ring_wakes_a_sleeper(clock: Clock) -> None:
    alarm = clock.alarm()
    sleeper = asyncio.create_task(alarm.wait(None))
    await asyncio.sleep(0)
    assert not sleeper.done()
    alarm.ring()
    await sleeper


@pytest.mark.parametrize("method", ["wait", "pause"])
async def test_a_ring_is_used_up_by_the_sleep_that_it_ends(clock: Clock, method: str) -> None:
    alarm = clock.alarm()
    sleep = getattr(alarm, method)
    for is_asleep in (False, True):
        if is_asleep:
            sleeper = asyncio.create_task(sleep(None))
            await asyncio.sleep(0)
            alarm.ring()
            await sleeper
        else:
            alarm.ring()
            await sleep(None)
        next_one = asyncio.create_task(sleep(None))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not next_one.done()
        next_one.cancel()
        await asyncio.gather(next_one, return_exceptions=True)


async def test_a_step_of_the_wall_clock_is_noticed_by_who_waits_for_an_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "_SLICE_MS", 1)
    clock = SystemClock()
    until = later(clock.now(), HOUR_MS)
    sleeper = asyncio.create_task(clock.alarm().wait(until))
    await asyncio.sleep(0)
    monkeypatch.setattr(clock, "now", lambda: until)
    async with asyncio.timeout(HANG_S):
        await sleeper


async def test_a_step_moves_the_hands_and_not_the_steady_clock() -> None:
    clock = VirtualClock(Instant(1_000))
    steady_ms = clock.steady_ms()
    for by_ms in (-400, 700):
        clock.step(by_ms)
        assert clock.steady_ms() == steady_ms
    assert clock.now() == 1_300
    await clock.advance(50)
    assert (clock.now(), clock.steady_ms()) == (1_350, steady_ms + 50)


async def test_the_hands_never_go_back_to_a_timer_that_a_step_has_passed() -> None:
    clock = VirtualClock(Instant(0))
    seen: list[int] = []

    async def sleeper() -> None:
        alarm = clock.alarm()
        await alarm.wait(Instant(10))
        seen.append(clock.now())
        alarm.close()

    task = asyncio.create_task(sleeper())
    await asyncio.sleep(0)
    clock.step(30)
    await clock.advance(5)
    await task
    assert seen == [30]
    assert clock.now() == 35


async def test_an_alarm_that_is_closed_twice_counts_once() -> None:
    clock = VirtualClock(Instant(0))
    closed, at_work = clock.alarm(), clock.alarm()
    closed.close()
    closed.close()
    advancing = asyncio.create_task(clock.advance(10))
    await asyncio.sleep(0)
    assert clock.now() == 0
    at_work.close()
    await advancing


async def test_the_system_clock_keeps_time() -> None:
    clock = SystemClock()
    until = later(clock.now(), 30)
    await clock.alarm().wait(until)
    assert clock.now() >= until


async def test_timers_fire_in_order_and_each_sees_its_own_time() -> None:
    clock = VirtualClock(Instant(0))
    seen: list[tuple[str, int]] = []

    async def sleeper(name: str, *times: int) -> None:
        alarm = clock.alarm()
        for at in times:
            await alarm.wait(Instant(at))
            seen.append((name, clock.now()))
        alarm.close()

    tasks = [asyncio.create_task(sleeper("a", 10, 30)), asyncio.create_task(sleeper("b", 20))]
    await asyncio.sleep(0)
    await clock.advance(100)
    assert seen == [("a", 10), ("b", 20), ("a", 30)]
    assert clock.now() == 100
    await asyncio.gather(*tasks)


async def test_advance_waits_for_whoever_is_at_work() -> None:
    clock = VirtualClock(Instant(0))
    alarm = clock.alarm()
    advancing = asyncio.create_task(clock.advance(10))
    await asyncio.sleep(0)
    assert clock.now() == 0
    alarm.close()
    await advancing
    assert clock.now() == 10


async def test_a_sleeper_that_is_cancelled_counts_until_it_has_cleaned_up() -> None:
    clock = VirtualClock(Instant(0))
    alarm = clock.alarm()
    sleeper = asyncio.create_task(alarm.wait(Instant(5)))
    await asyncio.sleep(0)
    sleeper.cancel()
    await asyncio.gather(sleeper, return_exceptions=True)
    advancing = asyncio.create_task(clock.advance(10))
    await asyncio.sleep(0)
    assert not advancing.done()
    alarm.close()
    await advancing
