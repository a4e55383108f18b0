"""Runs a node whose fleet has a day of history and a week of plans, to look at the portal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.model import Priority, operator_actor
from fairwarning.core.resources import (
    AvailabilitySet,
    CloudService,
    Member,
    Place,
    Resource,
    ScaleSet,
    VirtualMachine,
)
from fairwarning.node import Node, NodeSettings

BEGIN = Instant(1_794_729_600_000)
"""2026-11-15, 08:00 UTC: everything seen in the pictures is a day later."""
PLACE = Place(subscription="6f1f3a52-0c1e-4c55-9d43-8a41c4f1a3d7", resource_group="shop-prod",
              location="westeurope", test=True)  # fmt: skip
FLEET: tuple[Resource, ...] = (
    AvailabilitySet(name="web", update_domains=5, place=PLACE,
                    members=tuple(Member(name=f"web-{n}", addresses=(f"10.1.0.{4 + n}",))
                                  for n in range(10))),
    AvailabilitySet(name="checkout", update_domains=3, place=PLACE,
                    members=tuple(Member(name=f"checkout-{n}", addresses=(f"10.1.1.{4 + n}",))
                                  for n in range(6))),
    ScaleSet(name="workers", capacity=12, terminate_notice_ms=5 * MINUTE_MS, place=PLACE),
    ScaleSet(name="thumbnails", capacity=6, priority=Priority.SPOT, place=PLACE),
    CloudService(name="legacy-shop", roles={"FrontEnd": 3, "BackEnd": 2}, place=PLACE),
    VirtualMachine(name="db-primary", addresses=("10.1.2.4",), place=PLACE),
    VirtualMachine(name="db-replica", addresses=("10.1.2.5",), place=PLACE),
)  # fmt: skip
CLIENTS = {
    "fairwarning-agent/1.0": [f"web-{n}" for n in range(10)] + ["db-primary"],
    "Go-http-client/1.1": [f"checkout-{n}" for n in range(5)],
    "python-requests/2.32.3": [f"workers_{n}" for n in range(9)] + ["legacy-shop/FrontEnd_IN_0"],
}
HOST = "Host server is undergoing maintenance."
DISK = "Host server is showing signs of a failing disk."


class Life:
    def __init__(self, node: Node, api: httpx.AsyncClient) -> None:
        self.node = node
        self.api = api

    async def post(self, path: str, body: Any = None) -> Any:
        answer = await self.api.post(path, json=body or {})
        answer.raise_for_status()
        return answer.json()

    async def later(self, by: str) -> None:
        await self.post("/clock/advance", {"by": by})

    async def schedule(self, type: str, *targets: str, **more: Any) -> str:
        found = await self.post("/events", {"type": type, "targets": targets, **more})
        return str(found["id"])

    async def approve(self, event: str) -> None:
        await self.post(f"/events/{event}/approve")

    async def poll(self, name: str, agent: str, approves: str = "") -> None:
        """Polls as the handler on an instance does."""
        url = f"{self.node.metadata_urls[0]}/vm/{name}/metadata/scheduledevents"
        ask = {"params": {"api-version": "2020-07-01"},
               "headers": {"Metadata": "true", "User-Agent": agent}}  # fmt: skip
        async with httpx.AsyncClient() as client:
            await client.get(url, **ask)  # type: ignore[arg-type]
            if approves:
                body = {"StartRequests": [{"EventId": approves}]}
                await client.post(url, json=body, **ask)  # type: ignore[arg-type]

    async def poll_all(self) -> None:
        for agent, names in CLIENTS.items():
            for name in names:
                await self.poll(name, agent)
        self.node.engine.views.sample(self.node.clock.now() / 1000, 20)


@asynccontextmanager
async def living(*, pending: bool = True) -> AsyncIterator[Life]:
    settings = NodeSettings(store_url="memory:", is_clock_virtual=True, clock_start=BEGIN,
                            makes_starter_fleet=False)  # fmt: skip
    async with Node(settings) as node:
        await node.engine.declare(FLEET, by=operator_actor("ada"), why="fleet.toml")
        url = f"{node.control_url}/api/v1"
        async with httpx.AsyncClient(base_url=url, timeout=60) as api:
            life = Life(node, api)
            await yesterday(life)
            if pending:
                await today(life)
            yield life


async def yesterday(life: Life) -> None:
    await life.poll_all()
    freeze = await life.schedule("Freeze", "web-2", duration="5s", description=HOST)
    await life.poll("web-2", "fairwarning-agent/1.0", approves=freeze)
    await life.later("1h")
    disk = await life.schedule("Redeploy", "db-replica", notice="2h", description=DISK)
    await life.later("20m")
    await life.post(f"/events/{disk}/cancel", {"reason": "moved by hand"})
    await life.post("/rollouts", {"type": "Reboot", "scopes": ["checkout"], "name": "Kernel 6.12.9",
                                  "notice": "15m", "duration": "4m"})  # fmt: skip
    await life.later("3h")
    await life.post("/instances/thumbnails_3/evict")
    await life.later("2h")
    await life.post("/instances/workers_11/delete")
    await life.later("16h")


async def today(life: Life) -> None:
    await life.poll_all()
    for type, names, more in (
        ("Redeploy", ["db-primary"], {"notice": "3d", "description": DISK}),
        ("Reboot", ["legacy-shop/BackEnd_IN_1"], {"notice": "26h", "description": HOST}),
        ("Freeze", ["db-replica"], {"notice": "5h", "duration": "9s", "description": HOST}),
        ("Freeze", ["workers_4"], {"notice": "2d", "duration": "5s", "description": HOST}),
    ):
        await life.schedule(type, *names, **more)
    await life.post("/rollouts", {"type": "Reboot", "scopes": ["web"], "name": "Kernel 6.12.10",
                                  "notice": "15m", "duration": "4m", "timeZone": "Europe/Berlin",
                                  "windows": [{"days": [], "from": "06:00", "to": "18:00"}],
                                  "blackouts": ["2026-11-27"]})  # fmt: skip
    await life.later("31m")
    await life.poll_all()
    under_way = await life.schedule("Reboot", "checkout-1", duration="10m", description=HOST)
    await life.poll("checkout-1", "Go-http-client/1.1", approves=under_way)
    await life.later("2m")
    await life.poll_all()
    await life.post("/instances/workers_2/delete")
    await life.post("/instances/workers_5/delete")
