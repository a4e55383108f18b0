"""Domains of libvirt's test driver, with volumes."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost

POOL = "default-pool"
DISKS = """<disk type='volume' device='disk'><source pool='{pool}' volume='{name}-{target}'/>
<target dev='{target}'/></disk>"""
DOMAIN = """<domain type='test'><name>{name}</name><memory>65536</memory><os><type>hvm</type></os>
<devices>{disks}</devices></domain>"""
VOLUME = "<volume><name>{name}</name><capacity>{capacity}</capacity></volume>"


@asynccontextmanager
async def domain(host: LibvirtHost, *targets: str) -> AsyncIterator[str]:
    """A running domain with a volume of one megabyte for each target. It is gone afterwards."""
    name = f"web-{secrets.token_hex(4)}"

    def make(connection: Any) -> None:
        pool = connection.storagePoolLookupByName(POOL)
        for target in targets:
            pool.createXML(VOLUME.format(name=f"{name}-{target}", capacity=1 << 20), 0)
        disks = "".join(DISKS.format(pool=POOL, name=name, target=each) for each in targets)
        connection.defineXML(DOMAIN.format(name=name, disks=disks)).create()

    await host.call(make)
    try:
        yield name
    finally:
        await host.call(lambda connection: _remove(connection, name))


def _remove(connection: Any, name: str) -> None:
    pool = connection.storagePoolLookupByName(POOL)
    for volume in pool.listAllVolumes():
        if volume.name().startswith(name):
            volume.delete(0)
    for each in connection.listAllDomains():
        if each.name() == name:
            if each.isActive():
                each.destroy()
            each.undefine()


async def volumes(host: LibvirtHost, name: str) -> dict[str, tuple[str, int]]:
    """The key and the size of each volume of a domain, by its target."""

    def read(connection: Any) -> dict[str, tuple[str, int]]:
        found = connection.storagePoolLookupByName(POOL).listAllVolumes()
        own = [each for each in found if each.name().startswith(f"{name}-")]
        return {each.name().removeprefix(f"{name}-"): (each.key(), each.info()[1]) for each in own}

    return await host.call(read)
