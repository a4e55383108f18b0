"""Measures the time from an approval over HTTP to the domain's suspension, on the test driver.

The node runs in this process, so that the pauses of its event loop can be seen: a task wakes up
every five milliseconds and notes how late it was.
"""

import asyncio
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import libvirt

from benchmarks.cluster.nodes import row
from fairwarning.common.garbage_collection import ShortCollections
from fairwarning.core.commands import Schedule
from fairwarning.core.model import EventType, InstanceName, ScopeId, operator_actor
from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost
from fairwarning.node import Node, NodeSettings
from tests.drivers.libvirt.with_libvirt.conftest import test_driver
from tests.drivers.libvirt.with_libvirt.domains import domain
from tests.support.patience import HANG_S

EVERY_S = 0.005
ME = operator_actor("benchmark")
VM = "db"
SCOPE = ScopeId(f"00000000-0000-0000-0000-000000000000/default/vm/{VM}")
APPROVALS = "/metadata/scheduledevents?api-version=2020-07-01"


class Suspensions:
    """When a domain was last reported to be suspended, by the monotonic clock."""

    def __init__(self, connection: Any) -> None:
        self.at_s = 0.0
        self.seen = threading.Event()
        connection.domainEventRegisterAny(
            None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._note, None
        )

    def _note(self, _: Any, __: Any, event: int, ___: int, ____: Any) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED:
            self.at_s = time.monotonic()
            self.seen.set()


async def _watch_loop(pauses_s: list[float]) -> None:
    while True:
        before_s = time.monotonic()
        await asyncio.sleep(EVERY_S)
        pauses_s.append(time.monotonic() - before_s - EVERY_S)


async def measure(uri: str, rounds: int) -> tuple[list[float], list[float]]:
    """Returns the seconds from approval to suspension, and those that the loop was late."""
    host = LibvirtHost(uri, HANG_S)
    pauses_s: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder, 'fleet.db')}"
        async with (
            domain(host) as name,
            Node(NodeSettings(store_url=store, makes_starter_fleet=False)) as node,
            httpx.AsyncClient(
                base_url=node.metadata_urls[0], headers={"Metadata": "true"}, trust_env=False
            ) as client,
        ):
            suspensions = await host.call(Suspensions)
            place = Place(test=True, driver="libvirt", driver_settings={"uri": uri})
            machine = VirtualMachine(name=VM, addresses=("127.0.0.1",), handle=name, place=place)
            await node.engine.declare([machine], by=ME)
            collections = ShortCollections()
            collections.begin()  # As `serve` does.
            watching = asyncio.create_task(_watch_loop(pauses_s))
            took_s = [await _freeze(node, client, suspensions) for _ in range(rounds)]
            watching.cancel()
            collections.end()
    return took_s, pauses_s


async def _freeze(node: Node, client: httpx.AsyncClient, suspensions: Suspensions) -> float:
    suspensions.seen.clear()
    id = node.engine.new_id()
    targets = (InstanceName(VM),)
    freeze = Schedule(event_id=id, type=EventType.FREEZE, targets=targets, duration_s=0)
    await node.engine.submit(SCOPE, freeze, by=ME)
    (await client.get(APPROVALS)).raise_for_status()
    began_s = time.monotonic()
    body = {"StartRequests": [{"EventId": id}]}
    (await client.post(APPROVALS, json=body)).raise_for_status()
    while True:
        answer = await client.get(f"{node.control_url}/api/v1/events/{id}")
        if answer.json()["phase"] == "completed":
            break
        await asyncio.sleep(EVERY_S)
    assert suspensions.seen.is_set()
    return suspensions.at_s - began_s


def main(rounds: int = 300) -> None:
    with test_driver() as uri:
        took_s, pauses_s = asyncio.run(measure(uri, rounds))
    took_s.sort()
    p99_ms = took_s[int(len(took_s) * 0.99)] * 1000
    row(f"approve to suspended, p99 of {rounds}, test driver", f"{p99_ms:.0f} ms", "<= 200 ms")
    row("the same, median", f"{took_s[len(took_s) // 2] * 1000:.0f} ms")
    row("the event loop's longest pause meanwhile", f"{max(pauses_s) * 1000:.0f} ms", "<= 20 ms")
