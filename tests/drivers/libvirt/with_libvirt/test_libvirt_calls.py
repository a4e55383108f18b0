"""The calls of libvirt themselves, on libvirt's test driver."""

import asyncio
import threading
from pathlib import Path

import pytest

from fairwarning.drivers.libvirt.check_target import Relay
from fairwarning.drivers.libvirt.host import Disk, NoDomain, State
from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost
from fairwarning.drivers.libvirt.records import Record, Step
from fairwarning.engine.protocols import DriverFailed
from tests.drivers.libvirt.with_libvirt.domains import POOL, domain
from tests.support.patience import HANG_S

FIRST = Record(key="k1", attempt=3, step=Step.ACTED, at_ms=5, until_ms=7, run_id=2, asked="<&'\">")
SECOND = Record(key="k2", attempt=1)


async def test_a_domain_is_found_by_its_name_and_by_its_uuid(host: LibvirtHost) -> None:
    async with domain(host, "vda") as name:
        found = await host.look(name)
        assert (found.name, found.state, found.is_persistent) == (name, State.RUNNING, True)
        assert found.run_id > 0
        assert found.disks == (Disk(target="vda", pool=POOL, volume=f"{name}-vda"),)
        assert await host.look(found.uuid) == found
    with pytest.raises(NoDomain, match=f"no domain '{name}'"):
        await host.look(name)


async def test_records_live_in_the_metadata_running_or_not(host: LibvirtHost) -> None:
    async with domain(host) as name:
        found = await host.look(name)
        await host.remember(found, FIRST)
        await host.remember(found, SECOND)
        assert (await host.look(name)).records == {"k1": FIRST, "k2": SECOND}
        await host.destroy(found)
        assert (await host.look(name)).records == {"k1": FIRST, "k2": SECOND}
        await host.forget(found, "k1")
        await host.start(found)
        assert (await host.look(name)).records == {"k2": SECOND}


async def test_a_damaged_record_is_a_failure(host: LibvirtHost) -> None:
    async with domain(host) as name:
        await host.remember(await host.look(name), FIRST)
        await host.call(
            lambda connection: connection.lookupByName(name).setMetadata(
                2, "<impact attempt='x'/>", "fw", "https://fairwarning.invalid/libvirt/impact/k1", 1
            )
        )
        with pytest.raises(DriverFailed, match="the domain's metadata of k1 was changed"):
            await host.look(name)


async def test_each_start_has_another_number(host: LibvirtHost) -> None:
    async with domain(host) as name:
        first = await host.look(name)
        await host.destroy(first)
        off = await host.look(name)
        assert (off.state, off.run_id) == (State.OFF, -1)
        await host.start(first)
        assert (await host.look(name)).run_id not in {-1, first.run_id}


async def test_there_is_no_boot_id_without_a_guest_agent(host: LibvirtHost) -> None:
    async with domain(host) as name:
        assert await host.boot_id(await host.look(name)) == ""


async def test_an_error_of_libvirt_is_a_failure_with_its_reason(host: LibvirtHost) -> None:
    async with domain(host) as name:
        with pytest.raises(DriverFailed, match=r"libvirt: .*already running"):
            await host.start(await host.look(name))


async def test_a_call_that_hangs_ends_and_the_next_one_works(libvirtd: str) -> None:
    host = LibvirtHost(libvirtd, 1.0)
    assert await host.call(lambda connection: connection.isAlive()) == 1
    hanging = threading.Event()
    with pytest.raises(DriverFailed, match="libvirt gave no answer within 1 s"):
        await host.call(lambda _: hanging.wait())
    assert await host.call(lambda connection: connection.isAlive()) == 1
    hanging.set()


async def test_the_event_loop_goes_on_while_libvirt_works(libvirtd: str) -> None:
    host = LibvirtHost(libvirtd, HANG_S)
    released = threading.Event()
    # Only the event loop can end this call of libvirt.
    call = asyncio.create_task(host.call(lambda _: released.wait()))
    await asyncio.sleep(0)
    released.set()
    assert await call


async def test_a_connection_that_was_cut_is_made_again(libvirtd: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    relay = Relay(path, libvirtd.partition("socket=")[2])
    await relay.mend()
    host = LibvirtHost(f"test+unix:///default?socket={path}", HANG_S)
    assert (await host.look("test")).state is State.RUNNING
    await relay.cut()
    with pytest.raises(DriverFailed, match="libvirt: "):
        await host.look("test")
    await relay.mend()
    assert (await host.look("test")).state is State.RUNNING
    await relay.cut()


async def test_a_hypervisor_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    host = LibvirtHost(f"test+unix:///default?socket={tmp_path}/none", HANG_S)
    with pytest.raises(DriverFailed, match=r"libvirt: .*No such file"):
        await host.look("test")
