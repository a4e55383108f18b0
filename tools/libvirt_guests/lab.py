"""Two hosts, a node of ours on each, and guests: what the checks and the benchmark play with."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt

from tests.support.postgres import PostgresServer
from tools.debian_packages import program
from tools.libvirt_guests.domain_events import DomainEvents
from tools.libvirt_guests.guests import BASE, POOL, Guest, define_pool, start_guest
from tools.libvirt_guests.host import Host, hosts
from tools.libvirt_guests.image import Image
from tools.libvirt_guests.nodes import Node, fleet_file
from tools.postgres import url_of

_DISK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    hosts: Sequence[Host]
    nodes: Sequence[Node]
    connections: Sequence[Any]
    """A connection to the libvirtd of each host."""
    guests: dict[str, Guest]
    events: DomainEvents
    volumes: Path

    def where(self, name: str) -> list[str]:
        """Returns the hosts that have the domain."""
        return [
            host.name
            for host, connection in zip(self.hosts, self.connections, strict=True)
            if name in {each.name() for each in connection.listAllDomains()}
        ]

    def domain(self, name: str) -> Any:
        return next(
            each
            for connection in self.connections
            for each in connection.listAllDomains()
            if each.name() == name
        )


@contextmanager
def lab(
    folder: Path, image: Image, guests: Sequence[Guest], settings: dict[str, dict[str, str]]
) -> Iterator[Lab]:
    """Starts all of it. `settings` has those of the driver that differ, for each guest's name. With
    a `type` they are all settings of another driver.
    """
    events = DomainEvents()
    volumes = folder / "volumes"
    volumes.mkdir()
    with ExitStack() as closing:
        subprocess.run([program("ip"), "link", "set", "lo", "up"], check=True)  # noqa: S603
        database = PostgresServer()
        closing.callback(database.remove)
        database.start()
        store = url_of(database.dsn(database.create_database()))
        first, second = closing.enter_context(hosts(folder, ["host-a", "host-b"]))
        for name in (BASE, *(guest.name for guest in guests if guest.has_disk)):
            _make_disk(volumes / name, "base" if name == BASE else "first")
        connections = [libvirt.open(host.uri) for host in (first, second)]
        for connection in connections:
            events.follow(connection)
            define_pool(connection, volumes)
        fleet = [
            {
                "name": guest.name,
                "address": guest.address,
                "driver": own
                if "type" in (own := settings.get(guest.name, {}))
                else {
                    "type": "libvirt",
                    "uri": first.uri,
                    "other_uri": second.uri,
                    "base": f"{POOL}/{BASE}",
                    **own,
                },
            }
            for guest in guests
        ]
        nodes = [Node(first, store), Node(second, store)]
        nodes[0].start("--fleet", str(fleet_file(folder, fleet)))
        nodes[1].start()
        for node in nodes:
            closing.callback(node.stop)
        for guest in guests:
            start_guest(connections[0], guest, image, folder)
            closing.callback(guest.console.close)
        yield Lab(
            hosts=(first, second),
            nodes=nodes,
            connections=connections,
            guests={guest.name: guest for guest in guests},
            events=events,
            volumes=volumes,
        )


def _make_disk(path: Path, mark: str) -> None:
    """Makes a file system that has nothing but the mark of its image."""
    content = path.with_suffix(".content")
    content.mkdir()
    (content / "image").write_text(mark)
    with path.open("wb") as file:
        file.truncate(_DISK_BYTES)
    subprocess.run(  # noqa: S603
        [program("mke2fs"), "-q", "-F", "-d", str(content), str(path)], check=True
    )
    (content / "image").unlink()
    content.rmdir()
