"""The whole driver on the test driver of libvirt. It has no guests that could restart."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from fairwarning.core.model import EventType, InstanceName, OperationKind
from fairwarning.drivers.libvirt.driver import LibvirtDriver
from fairwarning.drivers.libvirt.host import NoDomain, State
from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import DriverFailed, Found, Order
from tests.drivers.libvirt.with_libvirt.domains import POOL, VOLUME, domain, volumes
from tests.drivers.orders import HeldLease, order

CLOCK = SystemClock()


def impact(
    host: LibvirtHost,
    name: str,
    type: EventType,
    settings: Mapping[str, str] | None = None,
    operation: OperationKind | None = None,
) -> Order:
    asked = order({"uri": host.uri, **(settings or {})}, operation=operation)
    instance = replace(asked.instances[0], name=InstanceName("web-0"), handle=name)
    return replace(asked, type=type, instances=(instance,), duration_s=1)


async def do(asked: Order) -> None:
    await LibvirtDriver(CLOCK).do(asked, CLOCK.alarm(), HeldLease())


async def found(asked: Order) -> Found:
    return await LibvirtDriver(CLOCK).find(asked)


async def test_freeze(host: LibvirtHost) -> None:
    async with domain(host) as name:
        asked = impact(host, name, EventType.FREEZE)
        work = asyncio.create_task(do(asked))
        while (await host.look(name)).state is not State.PAUSED:
            assert not work.done()
        assert await found(asked) is Found.RUNNING
        await work
        assert (await host.look(name)).state is State.RUNNING
        assert await found(asked) is Found.DONE


async def test_a_reboot_that_was_not_seen_is_a_failure(host: LibvirtHost) -> None:
    """The test driver answers that it has restarted the domain, and does nothing."""
    times = {"agent_time": "1s", "acpi_time": "1s", "reset_time": "1s"}
    async with domain(host) as name:
        with pytest.raises(DriverFailed, match="was asked to restart and ignored it"):
            await do(impact(host, name, EventType.REBOOT, times))


async def test_a_reboot_by_stop_and_start_is_seen(host: LibvirtHost) -> None:
    async with domain(host) as name:
        before = await host.look(name)
        asked = impact(host, name, EventType.REBOOT, {"restart_by": "restart"})
        await do(asked)
        after = await host.look(name)
        assert after.state is State.RUNNING
        assert after.run_id != before.run_id
        assert await found(asked) is Found.DONE


async def test_redeploy_empties_the_volatile_disks(host: LibvirtHost) -> None:
    async with domain(host, "vda", "vdb") as name:
        before = await volumes(host, name)
        await do(impact(host, name, EventType.REDEPLOY, {"volatile": "vdb"}))
        assert await volumes(host, name) == before
        assert (await host.look(name)).state is State.RUNNING


async def test_reimage_copies_the_base_volume(host: LibvirtHost) -> None:
    async with domain(host, "vda") as name:

        def make_base(connection: Any) -> None:
            pool = connection.storagePoolLookupByName(POOL)
            pool.createXML(VOLUME.format(name=f"{name}-base", capacity=3 << 20), 0)

        await host.call(make_base)
        asked = impact(
            host,
            name,
            EventType.REBOOT,
            {"base": f"{POOL}/{name}-base"},
            OperationKind.REIMAGE,
        )
        await do(asked)
        assert (await volumes(host, name))["vda"][1] == 3 << 20
        assert (await host.look(name)).state is State.RUNNING


async def test_terminate_leaves_neither_domain_nor_volumes(host: LibvirtHost) -> None:
    async with domain(host, "vda", "vdb") as name:
        asked = impact(host, name, EventType.TERMINATE)
        await do(asked)
        with pytest.raises(NoDomain):
            await host.look(name)
        assert await volumes(host, name) == {}
        assert await found(replace(asked, attempt=2)) is Found.DONE
        with pytest.raises(NoDomain):
            await do(asked)


async def test_power_and_eviction(host: LibvirtHost) -> None:
    async with domain(host) as name:
        stop = impact(host, name, EventType.POWER, operation=OperationKind.STOP)
        await do(stop)
        assert (await host.look(name)).state is State.OFF
        start = impact(host, name, EventType.POWER, operation=OperationKind.START)
        await do(replace(start, key=f"{start.key}-2"))
        assert (await host.look(name)).state is State.RUNNING
        evict = impact(host, name, EventType.PREEMPT)
        await do(replace(evict, key=f"{evict.key}-3"))
        assert (await host.look(name)).state is State.OFF


async def test_a_domain_that_was_undefined_meanwhile_is_a_clear_failure(host: LibvirtHost) -> None:
    async with domain(host) as name:
        asked = replace(impact(host, name, EventType.FREEZE), duration_s=600)
        work = asyncio.create_task(do(asked))
        while (await host.look(name)).state is not State.PAUSED:
            assert not work.done()

        def replace_it(connection: Any) -> None:
            old = connection.lookupByName(name)
            old.destroy()
            old.undefine()

        await host.call(replace_it)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        with pytest.raises(DriverFailed, match=f"no domain '{name}'"):
            await do(replace(asked, attempt=2))


async def test_migration_is_not_known_to_the_test_driver(host: LibvirtHost) -> None:
    """So it fails with libvirt's reason, and the domain stays where it is."""
    async with domain(host) as name:
        asked = impact(host, name, EventType.REDEPLOY, {"other_uri": "test:///default"})
        with pytest.raises(DriverFailed, match="libvirt: "):
            await do(asked)
        assert (await host.look(name)).state is State.RUNNING
