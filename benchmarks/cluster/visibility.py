"""Measures how long a committed change takes to the documents of every node.

Each node has a long-poll of the same instance. An event is announced to one node, and the clock
runs from its answer, which comes after the commit, to the last of the three documents.
"""

import asyncio
import time
from collections.abc import Sequence

import httpx
import uvloop

from benchmarks.cluster.nodes import TARGETS, cluster, new_store, percentile, postgres, row
from tests.support.processes import Served

PATH = "/vm/{}/metadata/scheduledevents?api-version=2020-07-01"
INSTANCES = 200


async def measure(nodes: Sequence[Served], events: int) -> tuple[list[float], list[float]]:
    """Returns milliseconds from the request, and from its answer, to the last document."""
    sent, answered = [], []
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        fleet = "test = true\n" + "".join(
            f'[[vm]]\nname = "vm{number}"\n' for number in range(INSTANCES)
        )
        applied = await client.post(
            f"{nodes[0].control}/api/v1/fleet",
            content=fleet,
            headers={"Content-Type": "application/toml"},
        )
        applied.raise_for_status()
        for number in range(events):
            name = f"vm{number % INSTANCES}"
            tags = [(await see(client, node, name, None)).headers["etag"] for node in nodes]
            waiting = [
                asyncio.create_task(at(client, node, name, tag))
                for node, tag in zip(nodes, tags, strict=True)
            ]
            await asyncio.sleep(0.05)  # The polls are held by then, and a real fleet is idle, too.
            began = time.perf_counter()
            id = await announce(client, nodes[number % len(nodes)], name)
            committed = time.perf_counter()
            last = max(await asyncio.gather(*waiting))
            sent.append((last - began) * 1000)
            answered.append(max(0.0, last - committed) * 1000)
            await client.post(f"{nodes[0].control}/api/v1/events/{id}/cancel")
    return sent, answered


async def announce(client: httpx.AsyncClient, node: Served, name: str) -> str:
    body = {"type": "Freeze", "targets": [name], "notice": "1h"}
    answer = await client.post(f"{node.control}/api/v1/events", json=body)
    id: str = answer.raise_for_status().json()["id"]
    return id


async def see(
    client: httpx.AsyncClient, node: Served, name: str, tag: str | None
) -> httpx.Response:
    headers = {"Metadata": "true"} | ({} if tag is None else {"If-None-Match": tag})
    path = PATH.format(name) + ("" if tag is None else "&wait=20")
    return await client.get(node.metadata + path, headers=headers)


async def at(client: httpx.AsyncClient, node: Served, name: str, tag: str) -> float:
    """Returns when the node shows another document."""
    while (await see(client, node, name, tag)).status_code == 304:
        pass
    return time.perf_counter()


def main(events: int = 300) -> None:
    with postgres() as server, cluster(new_store(server)) as nodes:
        sent, answered = uvloop.run(measure(nodes, events))
    shown = f"p50 {percentile(answered, 0.5):.1f}, p99 {percentile(answered, 0.99):.1f} ms"
    row(f"committed -> visible on {len(nodes)} nodes ({events} events)", shown, TARGETS["visible"])
    shown = f"p50 {percentile(sent, 0.5):.1f}, p99 {percentile(sent, 0.99):.1f} ms"
    row("  the same from the request", shown)
