"""One impact on one domain: the record in its metadata, the fence, and waiting.

libvirt cannot compare and set. So an attempt writes its number, waits a moment, and looks whether
the number is still there. It looks again before each act, and does nothing more if it finds a
higher number.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from fairwarning.core.instants import Instant, later
from fairwarning.drivers.libvirt.host import Domain, Host, NoDomain, State
from fairwarning.drivers.libvirt.records import Record, Step, refuse_lower, seen, superfluous
from fairwarning.drivers.libvirt.settings import Settings
from fairwarning.engine.protocols import Alarm, Clock, DriverFailed, Order

SETTLE_MS = 100
"""How long an attempt that others may dispute waits before it looks whether it holds."""
LOOK_MS = 250
"""The pause between two looks at a domain that is to change."""
CLAIMS_MAX = 5


@dataclass(slots=True)
class Impact:
    """An attempt at an impact on one domain."""

    order: Order
    handle: str
    settings: Settings
    host: Host
    other: Host | None
    """The second host, if there is one."""
    clock: Clock
    alarm: Alarm
    domain: Domain
    record: Record
    is_new: bool
    """Whether no earlier attempt can have begun."""

    @property
    def name(self) -> str:
        return self.handle

    async def look(self) -> Domain:
        """Look at the domain again. Raises DriverFailed if a higher attempt was seen, or if the
        domain was undefined or replaced meanwhile.
        """
        try:
            self.domain = await self.host.look(self.domain.uuid)
        except NoDomain:
            raise await self._why_gone() from None
        found = self.domain.records.get(self.order.key)
        refuse_lower(found, self.order.attempt)
        if found is None:
            raise DriverFailed(
                f"somebody removed the record of this impact from the metadata of {self.name}"
            )
        return self.domain

    async def _why_gone(self) -> DriverFailed:
        try:
            now = await self.host.look(self.handle)
        except NoDomain:
            return DriverFailed(f"{self.name} was undefined during the impact")
        return DriverFailed(
            f"{self.name} was replaced during the impact: its UUID was {self.domain.uuid} and is "
            f"{now.uuid}"
        )

    async def write(self, step: Step, **changes: int | str) -> None:
        self.record = replace(self.record, step=step, **changes)
        await self.host.remember(self.domain, self.record)

    async def act(self, act: Callable[[Domain], Coroutine[Any, Any, None]], wanted: State) -> None:
        """Do something to the domain, unless it is in the wanted state already. Raises DriverFailed
        if it is not in that state afterwards.
        """
        if (await self.look()).state is wanted:
            return
        try:
            await finish(act(self.domain))
        except NoDomain:
            raise await self._why_gone() from None
        except DriverFailed:
            # An earlier attempt, or somebody else, may have done the same a moment ago.
            if (await self.look()).state is not wanted:
                raise

    async def becomes(self, is_so: Callable[[Domain], bool], within_s: float) -> bool:
        """Look at the domain until `is_so` is true or the time is over. Return whether it became
        true.
        """
        ends_ms = self.clock.steady_ms() + round(within_s * 1000)
        while not is_so(await self.look()):
            left_ms = ends_ms - self.clock.steady_ms()
            if left_ms <= 0:
                return False
            await self.alarm.pause(min(LOOK_MS, left_ms))
        return True

    def ends_ms(self, duration_ms: int) -> Instant:
        return later(self.clock.now(), duration_ms)


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Await something that must not be left half done: a cancellation waits for its end."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def claim(impact: Impact) -> bool:
    """Write the attempt into the domain's metadata, and return False if the key is done already.
    Raises DriverFailed if a higher attempt was seen.
    """
    key, attempt = impact.order.key, impact.order.attempt
    for _ in range(CLAIMS_MAX):
        found = impact.domain.records.get(key)
        refuse_lower(found, attempt)
        if found is not None and found.step is Step.DONE:
            return False
        is_disputed = found is not None or attempt > 1
        if found is not None and found.step is not Step.SEEN:
            impact.is_new = False
        for old in superfluous(impact.domain.records, key):
            await impact.host.forget(impact.domain, old)
        impact.record = seen(found, key, attempt, impact.clock.now())
        await impact.host.remember(impact.domain, impact.record)
        if is_disputed:
            await impact.alarm.pause(SETTLE_MS)
        impact.domain = await impact.host.look(impact.domain.uuid)
        found = impact.domain.records.get(key)
        if found is not None and found.attempt == attempt:
            impact.record = found
            impact.is_new = impact.is_new and found.step is Step.SEEN
            return found.step is not Step.DONE
    raise DriverFailed(f"another node keeps changing the metadata of {impact.name}")
