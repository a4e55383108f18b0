"""The driver `libvirt`: it finds the domains of an order, and acts on all of them at once."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from fairwarning.core.model import Instance
from fairwarning.drivers.check_target import CheckTarget
from fairwarning.drivers.libvirt import settings as known_settings
from fairwarning.drivers.libvirt.actions import action_for, deletes
from fairwarning.drivers.libvirt.host import Domain, Host, NoDomain
from fairwarning.drivers.libvirt.impact import Impact, claim
from fairwarning.drivers.libvirt.records import Record, Step, seen
from fairwarning.drivers.libvirt.settings import Settings
from fairwarning.drivers.orders import handle_of
from fairwarning.engine.protocols import Alarm, Clock, DriverFailed, Found, Lease, Order


class LibvirtDriver:
    SETTINGS = known_settings.SETTINGS

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hosts: dict[tuple[str, float], Host] = {}

    @classmethod
    def check_target(cls, settings: Mapping[str, str]) -> AbstractAsyncContextManager[CheckTarget]:
        # It needs libvirt-python, as the check itself does.
        from fairwarning.drivers.libvirt.check_target import throw_away_domain  # noqa: PLC0415

        return throw_away_domain(settings)

    async def find(self, order: Order) -> Found:
        settings = known_settings.parse(order.settings)
        steps = [await self._find(each, order, settings) for each in order.instances]
        if all(step is Step.DONE for step in steps):
            return Found.DONE
        is_begun = any(step is not Step.SEEN for step in steps)
        return Found.RUNNING if is_begun else Found.UNKNOWN

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        settings = known_settings.parse(order.settings)
        if len(order.instances) == 1:
            await self._do(order.instances[0], order, settings, alarm, lease)
            return
        tasks = [
            asyncio.create_task(self._do_beside_others(each, order, settings, lease))
            for each in order.instances
        ]
        for task in tasks:
            task.add_done_callback(lambda _: alarm.ring())
        try:
            # With the alarm, so that a virtual clock can move meanwhile.
            while not all(task.done() for task in tasks):
                await alarm.pause(None)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _do_beside_others(
        self, instance: Instance, order: Order, settings: Settings, lease: Lease
    ) -> None:
        alarm = self._clock.alarm()
        try:
            await self._do(instance, order, settings, alarm, lease)
        finally:
            alarm.close()

    async def _find(self, instance: Instance, order: Order, settings: Settings) -> Step:
        try:
            host, _, domain = await self._where(handle_of(instance), settings)
        except NoDomain:
            if order.attempt > 1 and deletes(order, instance):
                return Step.DONE
            raise
        before = domain.records.get(order.key)
        record = seen(before, order.key, order.attempt, self._clock.now())
        if record != before:
            await host.remember(domain, record)
        return record.step

    async def _do(
        self, instance: Instance, order: Order, settings: Settings, alarm: Alarm, lease: Lease
    ) -> None:
        handle = handle_of(instance)
        try:
            host, other, domain = await self._where(handle, settings)
        except NoDomain:
            if order.attempt > 1 and deletes(order, instance):
                return
            raise
        impact = Impact(
            order=order,
            handle=handle,
            settings=settings,
            host=host,
            other=other,
            clock=self._clock,
            alarm=alarm,
            domain=domain,
            record=Record(key=order.key, attempt=order.attempt),
            is_new=True,
        )
        if not await claim(impact):
            return
        await lease.confirm(alarm)
        await action_for(order, instance)(impact)
        if not deletes(order, instance):
            await impact.write(Step.DONE)

    async def _where(self, handle: str, settings: Settings) -> tuple[Host, Host | None, Domain]:
        """Return the host that has the domain, the other host, and the domain."""
        first = self._host(settings.uri, settings)
        if not settings.other_uri:
            return first, None, await first.look(handle)
        second = self._host(settings.other_uri, settings)
        try:
            return first, second, await first.look(handle)
        except NoDomain:
            return second, first, await second.look(handle)

    def _host(self, uri: str, settings: Settings) -> Host:
        call_s = settings.seconds["call_time"]
        host = self._hosts.get((uri, call_s))
        if host is None:
            host = self._hosts[uri, call_s] = make_host(uri, call_s)
        return host


def make_host(uri: str, call_s: float) -> Host:
    try:
        from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost  # noqa: PLC0415
    except ImportError:
        raise DriverFailed(known_settings.NOT_INSTALLED) from None
    return LibvirtHost(uri, call_s)
