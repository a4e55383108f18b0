"""Which worker a connection reaches."""

import socket
from collections.abc import Callable, Sequence

from fairwarning.workers.shared_addresses import open_for_workers
from tests.support.namespaces import ENDPOINT, run_in_vms
from tests.support.vms import Rig

WORKERS = 3
ENDPOINT_6 = "fd00:77::fe"
VMS = {f"vm-{n}": [f"10.77.0.{11 + n}", f"fd00:77::{11 + n:x}"] for n in range(6)}


def make(_: str, new: Callable[[], socket.socket]) -> socket.socket:
    return new()


def opened_at(host: str) -> list[socket.socket]:
    by_worker = open_for_workers([(host, 0)], WORKERS, make)
    sockets = [each for own in by_worker for each in own.values()]
    for each in sockets:
        each.settimeout(30)
    return sockets


def worker_of(sockets: Sequence[socket.socket], connect: Callable[[tuple[str, int]], None]) -> int:
    """Connect, and return the index of the socket that gets the connection."""
    connect(sockets[0].getsockname()[:2])
    while True:
        for index, each in enumerate(sockets):
            each.setblocking(False)
            try:
                each.accept()[0].close()
            except BlockingIOError:
                continue
            return index


def connect_and_send(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=30) as client:
        # The kernel hands a connection over when its first bytes are there.
        client.sendall(b"x")


def vms_connect(rig: Rig, endpoint: str) -> dict[str, list[int]]:
    sockets = opened_at(endpoint)
    return {
        name: [
            worker_of(sockets, lambda address, vm=vm: vm.call(connect_and_send, address))  # type: ignore[misc]
            for _ in range(4)
        ]
        for name, vm in rig.vms.items()
    }


def test_connections_from_one_address_reach_one_worker() -> None:
    for endpoint in (ENDPOINT, ENDPOINT_6):
        found = run_in_vms(
            vms_connect, VMS, endpoints=[ENDPOINT, ENDPOINT_6], arguments={"endpoint": endpoint}
        )
        assert all(len(set(workers)) == 1 for workers in found.values()), found
        assert len({workers[0] for workers in found.values()}) > 1, found


def test_connections_on_loopback_reach_all_workers() -> None:
    for host in ("127.0.0.1", "::1"):
        sockets = opened_at(host)
        found = {worker_of(sockets, connect_and_send) for _ in range(60)}
        assert found == set(range(WORKERS))
        for each in sockets:
            each.close()


def test_all_workers_share_the_port_that_was_picked() -> None:
    sockets = opened_at("127.0.0.1")
    assert len({each.getsockname()[1] for each in sockets}) == 1
    for each in sockets:
        each.close()
