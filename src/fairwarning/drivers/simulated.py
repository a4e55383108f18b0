"""The default driver changes nothing. It only waits, or fails if a test asks it to.

An impact begins at the event's start. It lasts for the event's duration, or as long as a scenario
says. Its end is computed from the order alone, so a restart of the server does not change it.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from fairwarning.core.driver_settings import DriverSettings
from fairwarning.core.instants import SECOND_MS, Instant, later
from fairwarning.core.model import EventType, InstanceName
from fairwarning.drivers.check_target import CheckTarget
from fairwarning.engine.protocols import Alarm, Clock, DriverFailed, Found, Lease, Order

UNKNOWN_DURATION_S: Mapping[EventType, int] = {
    EventType.FREEZE: 5,
    EventType.REBOOT: 30,
    EventType.REDEPLOY: 60,
    EventType.PREEMPT: 5,
    EventType.TERMINATE: 5,
    EventType.POWER: 5,
}
"""How long an impact takes if the event has no duration."""
SETTINGS = DriverSettings(driver="simulated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """How the driver should fail for one instance."""

    fails: int = 0
    """How many of the next attempts fail."""
    hangs: bool = False
    """Whether the driver never answers."""


class SimulatedDriver:
    SETTINGS = SETTINGS

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[InstanceName, Trouble] = {}

    @classmethod
    def check_target(cls, settings: Mapping[str, str]) -> AbstractAsyncContextManager[CheckTarget]:
        return nullcontext(CheckTarget(settings=settings, handles=("one", "two"), acts=False))

    def fail(self, name: InstanceName, times: int) -> None:
        self._troubles[name] = Trouble(fails=times)

    def hang(self, name: InstanceName) -> None:
        self._troubles[name] = Trouble(hangs=True)

    def behave(self, name: InstanceName) -> None:
        self._troubles.pop(name, None)

    async def find(self, order: Order) -> Found:
        if self._trouble(order) is not None:
            return Found.UNKNOWN
        return Found.DONE if self._clock.now() >= _ends_ms(order) else Found.RUNNING

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        found = self._trouble(order)
        if found is not None:
            await self._go_wrong(*found, alarm)
        while self._clock.now() < _ends_ms(order):
            await alarm.wait(_ends_ms(order))

    def _trouble(self, order: Order) -> tuple[InstanceName, Trouble] | None:
        for instance in order.instances:
            trouble = self._troubles.get(instance.name)
            if trouble is not None:
                return instance.name, trouble
        return None

    async def _go_wrong(self, name: InstanceName, trouble: Trouble, alarm: Alarm) -> None:
        while trouble.hangs:
            await alarm.wait(None)
        if trouble.fails > 1:
            self._troubles[name] = Trouble(fails=trouble.fails - 1)
        else:
            self.behave(name)
        raise DriverFailed(f"instance {name!r} was told to fail")


def _ends_ms(order: Order) -> Instant:
    known_s = order.duration_s if order.duration_s >= 0 else UNKNOWN_DURATION_S[order.type]
    lasts_s = known_s if order.lasts_s is None else order.lasts_s
    return later(order.started_ms, lasts_s * SECOND_MS)
