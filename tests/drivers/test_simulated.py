"""The simulated driver: when an impact is over, and what goes wrong on request."""

import asyncio

import pytest
from msgspec.structs import replace

from fairwarning.core.instants import SECOND_MS
from fairwarning.core.model import EventType, InstanceName
from fairwarning.drivers.simulated import UNKNOWN_DURATION_S, SimulatedDriver
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import DriverFailed, Found, Order
from tests.core.builders import T0
from tests.drivers.orders import HeldLease, order

WEB0 = InstanceName("web-0")
WEB1 = InstanceName("web-1")


def impact(duration_s: int, lasts_s: int | None = None) -> Order:
    return replace(order({}), duration_s=duration_s, lasts_s=lasts_s)


async def carry_out(driver: SimulatedDriver, clock: VirtualClock, asked: Order) -> None:
    alarm = clock.alarm()
    try:
        await driver.do(asked, alarm, HeldLease())
    finally:
        alarm.close()


@pytest.mark.parametrize(
    ("asked", "lasts_s"),
    [
        (impact(30), 30),
        (impact(0), 0),
        (impact(-1), UNKNOWN_DURATION_S[EventType.REBOOT]),
        (impact(30, lasts_s=7), 7),
        (impact(30, lasts_s=0), 0),
        (impact(-1, lasts_s=90), 90),
    ],
)
async def test_an_impact_is_over_after_its_duration(asked: Order, lasts_s: int) -> None:
    clock = VirtualClock(T0)
    driver = SimulatedDriver(clock)
    work = asyncio.create_task(carry_out(driver, clock, asked))
    await asyncio.sleep(0)
    if lasts_s:
        await clock.advance(lasts_s * SECOND_MS - 1)
        assert await driver.find(asked) is Found.RUNNING
        assert not work.done()
        await clock.advance(1)
    assert await driver.find(asked) is Found.DONE
    await work
    assert clock.now() == T0 + lasts_s * SECOND_MS


async def test_a_later_attempt_waits_for_the_rest_only() -> None:
    """The time counts from the start of the event, whoever asks."""
    clock = VirtualClock(T0)
    clock.step(29 * SECOND_MS)
    work = asyncio.create_task(carry_out(SimulatedDriver(clock), clock, impact(30)))
    await asyncio.sleep(0)
    await clock.advance(SECOND_MS)
    await work


async def test_so_many_attempts_fail_as_were_asked_for() -> None:
    clock = VirtualClock(T0)
    driver = SimulatedDriver(clock)
    driver.fail(WEB1, 2)
    for _ in range(2):
        assert await driver.find(impact(0)) is Found.UNKNOWN, "what failed was never begun"
        with pytest.raises(DriverFailed, match="'web-1' was told to fail"):
            await carry_out(driver, clock, impact(0))
    await carry_out(driver, clock, impact(0))
    assert await driver.find(impact(0)) is Found.DONE


async def test_each_instance_goes_wrong_on_its_own() -> None:
    clock = VirtualClock(T0)
    driver = SimulatedDriver(clock)
    for name in (WEB0, WEB1):
        driver.fail(name, 1)
    for name in (WEB0, WEB1):
        with pytest.raises(DriverFailed, match=name):
            await carry_out(driver, clock, impact(0))
    await carry_out(driver, clock, impact(0))


async def test_what_hangs_hangs_until_it_is_told_to_behave() -> None:
    clock = VirtualClock(T0)
    driver = SimulatedDriver(clock)
    driver.hang(WEB0)
    work = asyncio.create_task(carry_out(driver, clock, impact(0)))
    await clock.advance(10_000 * SECOND_MS)
    assert not work.done()
    assert await driver.find(impact(0)) is Found.UNKNOWN
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    driver.behave(WEB0)
    await carry_out(driver, clock, impact(0))
