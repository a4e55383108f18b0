"""Measures approvals a second over HTTP on SQLite, beside bare sqlite3.

Every approval starts its event, so it is a whole transaction: scope, event and journal. Ours
logs and counts each commit, as `serve` does.
"""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from msgspec.structs import replace

from benchmarks.engine.workload import ME, new_id
from fairwarning.boot import make_engine, make_metadata_server, make_store
from fairwarning.core.commands import Activate, Approve, Schedule
from fairwarning.core.decide import decide
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    NodeId,
    Scope,
    instance_actor,
)
from fairwarning.core.resources import Place, VirtualMachine, expand
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Moment
from fairwarning.logs import log_commit, set_up
from fairwarning.metadata.settings import EndpointRules
from fairwarning.operator_api.metrics import Metrics
from fairwarning.stores.codec import Stored
from fairwarning.stores.sql_store import plan_transaction
from fairwarning.stores.sqlite.connection import QUERIES, connect

EVENTS = 1_500
CONNECTIONS = 64
ROUNDS = 3


def prepared() -> list[tuple[Scope, EventId]]:
    """Returns scopes that are activated and have an event to approve."""
    now = SystemClock().now()
    found = []
    for number in range(EVENTS):
        machine = VirtualMachine(name=f"vm{number}", place=Place(test=True))
        (scope,) = expand(machine)
        scope = decide(scope, Activate(), now).scope
        id = new_id()
        targets = (InstanceName(machine.name),)
        command = Schedule(event_id=id, type=EventType.REBOOT, targets=targets, duration_s=3600)
        found.append((decide(scope, command, now).scope, id))
    return found


async def fill(url: str, work: list[tuple[Scope, EventId]]) -> None:
    store = make_store(url, SystemClock())
    await store.open()
    engine = make_engine(store, SystemClock())
    await store.create([replace(scope, events={}, activated_ms=None, last_seen_ms=None,
                                incarnation=0) for scope, _ in work], by=ME)  # fmt: skip
    for scope, id in work:
        await engine.submit(scope.id, Activate(), by=ME)
        event = scope.events[id]
        command = Schedule(
            event_id=id, type=event.type, targets=event.resources, duration_s=event.duration_s
        )
        await engine.submit(scope.id, command, by=ME)
    await store.close()


async def ours(url: str, work: list[tuple[Scope, EventId]], folder: str) -> float:
    await fill(url, work)
    clock = SystemClock()
    store = make_store(url, clock)
    await store.open()
    engine = make_engine(store, clock)
    metrics = Metrics(dict)
    engine.observe(log_commit)
    engine.observe(lambda receipt, _by, _why, took_s: metrics.note_commit(receipt, took_s))
    server = await make_metadata_server(
        engine, store, clock, [("127.0.0.1", 0)], EndpointRules(requests_per_second_max=0)
    )
    await engine.start()
    server.start()
    orders = Path(folder, "orders.json")
    told = json.dumps([[scope.roster.resource, id] for scope, id in work])
    orders.write_text(told)  # noqa: ASYNC240
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.metadata.approvals", server.urls[0], str(orders),
        stdout=subprocess.PIPE,
    )  # fmt: skip
    said, _ = await client.communicate()
    await server.stop()
    await engine.stop()
    await store.close()
    return EVENTS / float(said)


async def bare(url: str, work: list[tuple[Scope, EventId]]) -> float:
    await fill(url, work)
    now = SystemClock().now()
    transactions = []
    for scope, id in work:
        by = instance_actor(InstanceName(scope.roster.resource))
        stored = Stored(scope=replace(scope, revision=3), next_deadline_ms=None)
        command = Approve(event_id=id, by=by)
        transaction = plan_transaction(
            stored,
            lambda scope, moment, command=command: decide(  # type: ignore[misc]
                scope, command, moment.now_ms, node=NodeId("n")
            ),
            Moment(now_ms=now),
            by=by,
            why="",
        )
        transactions.append((scope.id, transaction.statements))
    connection = connect(Path(url.removeprefix("sqlite:///")))
    began = time.perf_counter()
    for scope_id, statements in transactions:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(QUERIES["read_scope"], {"id": scope_id}).fetchone()
        for statement in statements:
            connection.execute(QUERIES[statement.name], statement.values)
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return len(transactions) / took


async def send_all(url: str, orders: list[list[str]]) -> float:
    host, _, port = url.removeprefix("http://").partition(":")

    async def send(mine: list[list[str]]) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for name, id in mine:
            body = b'{"StartRequests":[{"EventId":"%s"}]}' % id.encode()
            path = f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01"
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nMetadata: true\r\nContent-Length: "
            writer.write(head.encode() + b"%d\r\n\r\n" % len(body) + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(send(orders[n::CONNECTIONS]) for n in range(CONNECTIONS)))
    return time.perf_counter() - began


def main() -> None:
    if len(sys.argv) == 3:
        orders = json.loads(Path(sys.argv[2]).read_text())
        print(uvloop.run(send_all(sys.argv[1], orders)))
        return
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        # Written and thrown away: `serve` has a line for each transition too.
        set_up("human", "info")
        compare()


def compare() -> None:
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/{number}"
            rates["ours"].append(uvloop.run(ours(f"{url}-ours.db", prepared(), folder)))
            rates["bare"].append(asyncio.run(bare(f"{url}-bare.db", prepared())))
    mine, theirs = statistics.median(rates["ours"]), statistics.median(rates["bare"])
    print(f"approvals over HTTP {mine:,.0f}/s, bare {theirs:,.0f}/s, ratio {mine / theirs:.2f}")


if __name__ == "__main__":
    main()
