"""A virtual clock that runs by itself keeps the order of its timers, and the speed."""

import asyncio

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, Instant
from fairwarning.engine.clocks import Pacer, VirtualClock


class Watch:
    """Real time, as far as a pacer can tell; and an alarm that passes it without waiting."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s

    async def wait(self, until: Instant | None) -> None:
        raise AssertionError("a pacer knows no instants of real time")

    async def pause(self, for_ms: int | None) -> None:
        self.s += (for_ms or 0) / 1000
        await asyncio.sleep(0)

    def ring(self) -> None:
        pass

    def close(self) -> None:
        pass


async def test_a_stride_is_as_long_as_the_speed_says() -> None:
    clock, watch = VirtualClock(Instant(0)), Watch()
    pacer = Pacer(clock, 60, seconds=watch)
    watch.s += 2
    await pacer.stride()
    assert clock.now() == 2 * MINUTE_MS


async def test_small_strides_lose_nothing() -> None:
    clock, watch = VirtualClock(Instant(0)), Watch()
    pacer = Pacer(clock, 0.3, seconds=watch)
    for _ in range(1_000):
        watch.s += 0.001
        await pacer.stride()
    assert clock.now() in (299, 300)


async def test_timers_fire_in_order_and_at_their_own_instants_however_long_the_stride() -> None:
    clock, watch = VirtualClock(Instant(0)), Watch()
    seen: list[tuple[str, int]] = []

    async def sleeper(name: str, *times: int) -> None:
        alarm = clock.alarm()
        for at in times:
            await alarm.wait(Instant(at))
            seen.append((name, clock.now()))
        alarm.close()

    tasks = [asyncio.create_task(sleeper("a", 10, 30)), asyncio.create_task(sleeper("b", 20))]
    await asyncio.sleep(0)
    pacer = Pacer(clock, 1_000, seconds=watch)
    watch.s += 1
    await pacer.stride()
    assert seen == [("a", 10), ("b", 20), ("a", 30)]
    await asyncio.gather(*tasks)


async def test_it_runs_by_itself_and_can_be_moved_by_hand_besides() -> None:
    clock, watch = VirtualClock(Instant(0)), Watch()
    pacer = Pacer(clock, 60, seconds=watch, alarm=watch)
    alarm = clock.alarm()
    pacer.start()
    assert clock.speed == 60
    await alarm.wait(Instant(MINUTE_MS))
    alarm.close()
    await clock.advance(HOUR_MS)
    assert clock.now() >= HOUR_MS + MINUTE_MS
    await pacer.stop()
    assert clock.speed == 0
    stood = clock.now()
    watch.s += 10
    await asyncio.sleep(0)
    assert clock.now() == stood


async def test_what_passed_before_its_start_does_not_count() -> None:
    clock, watch = VirtualClock(Instant(0)), Watch()
    pacer = Pacer(clock, 60, seconds=watch, alarm=watch)
    watch.s += 3_600
    pacer.start()
    await pacer.stride()
    assert clock.now() == 0
    await pacer.stop()
