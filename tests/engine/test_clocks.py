"""Both clocks keep the contract of an alarm; the virtual one knows when everybody rests."""

import asyncio

import pytest

from fairwarning.core.instants import HOUR_MS, Instant, later
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.engine.ports import Clock


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
