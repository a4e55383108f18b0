"""Measures a fail-over: the primary of three nodes is killed, and its standby takes over.

All the time instances poll every node. The clock of approvals runs from the moment at which the
new primary takes writes to the first approval that succeeds after it.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import httpx
import uvloop

from benchmarks.cluster.nodes import NODES, TARGETS, cluster, percentile, postgres, row
from benchmarks.metadata.approvals import fill, prepared
from fairwarning.core.model import EventId, Scope
from tests.support.postgres import PostgresServer
from tests.support.processes import Served
from tools.postgres import url_of

PATH = "/vm/{}/metadata/scheduledevents?api-version=2020-07-01"
POLLERS = 8
"""For each node. Each waits a little between polls, as instances do."""
BEFORE_S, AFTER_S = 3.0, 5.0
GIVE_UP_S = 60.0


@dataclass
class Seen:
    polls: int = 0
    failed: list[str] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)


@contextlib.contextmanager
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Runs a primary and its synchronous standby."""
    with postgres(synchronous_standby_names="*") as primary:
        standby = PostgresServer(copied_from=primary, max_connections="300", hot_standby="on")
        try:
            standby.start()
            yield primary, standby
        finally:
            standby.remove()


async def poll(node: Served, names: Sequence[str], seen: Seen, ended: asyncio.Event) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        while not ended.is_set():
            began = time.perf_counter()
            try:
                path = PATH.format(names[seen.polls % len(names)])
                answer = await client.get(node.metadata + path, headers={"Metadata": "true"})
                if answer.status_code != 200:
                    seen.failed.append(f"{answer.status_code}")
            except httpx.HTTPError as error:
                seen.failed.append(repr(error))
            seen.polls += 1
            seen.took_s.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)


async def approve(node: Served, name: str, id: str) -> bool:
    async with httpx.AsyncClient(trust_env=False, timeout=2) as client:
        try:
            answer = await client.post(
                node.metadata + PATH.format(name),
                json={"StartRequests": [{"EventId": id}]},
                headers={"Metadata": "true"},
            )
        except httpx.HTTPError:
            return False
        return answer.status_code == 200


async def first_approval(node: Served, work: list[tuple[Scope, EventId]]) -> float:
    """Returns when an approval succeeded, tried again and again as a client would."""
    until = time.perf_counter() + GIVE_UP_S
    while time.perf_counter() < until:
        scope, id = work.pop()
        if await approve(node, scope.roster.resource, id):
            return time.perf_counter()
        await asyncio.sleep(0.02)
    raise SystemExit("no approval succeeded after the fail-over")


async def measure(
    nodes: Sequence[Served],
    servers: tuple[PostgresServer, PostgresServer],
    work: list[tuple[Scope, EventId]],
) -> tuple[Seen, float, float]:
    primary, standby = servers
    names = [scope.roster.resource for scope, _ in work]
    seen, ended = Seen(), asyncio.Event()
    polling = [
        asyncio.create_task(poll(node, names, seen, ended))
        for node in nodes
        for _ in range(POLLERS)
    ]
    await asyncio.sleep(BEFORE_S)
    scope, id = work.pop()
    assert await approve(nodes[0], scope.roster.resource, id), "approvals fail before the fault"
    await asyncio.to_thread(primary.kill)
    killed = time.perf_counter()
    await asyncio.to_thread(standby.promote)
    writes = time.perf_counter()
    parts = [work[number::NODES] for number in range(NODES)]
    approved = await asyncio.gather(
        *(first_approval(node, part) for node, part in zip(nodes, parts, strict=True))
    )
    await asyncio.sleep(AFTER_S)
    ended.set()
    await asyncio.gather(*polling)
    return seen, max(approved) - writes, writes - killed


def main() -> None:
    work = prepared()
    with pair() as servers:
        database = servers[0].create_database()
        one, two = (url_of(each.dsn(database)).partition("?host=")[2] for each in servers)
        store = (
            f"postgresql://postgres@/{database}?host={one},{two}&target_session_attrs=read-write"
        )
        uvloop.run(fill(store, work))
        with cluster(store, "--lease", "5s") as nodes:
            seen, again_s, away_s = uvloop.run(measure(nodes, servers, work))
    row(
        f"fail-over (no primary for {away_s:.1f} s): failed polls of {seen.polls:,}",
        str(len(seen.failed)),
        "0",
    )
    row("  polls meanwhile", f"p99 {percentile(seen.took_s, 0.99) * 1000:.0f} ms")
    row(
        "  approvals again at all nodes after writes are taken",
        f"{again_s:.2f} s",
        TARGETS["again"],
    )
    for each in sorted(set(seen.failed)):
        row("  a failed poll", each[:60])
