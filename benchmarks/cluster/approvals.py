"""Measures approvals a second over HTTP with three nodes, beside the same statements by psycopg.

As many processes run the bare statements as there are nodes, each with as many connections as a
node has. Each approval starts its event, so it is a whole transaction.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier

import psycopg
import uvloop
from msgspec.structs import replace
from psycopg import AsyncClientCursor

from benchmarks.cluster.nodes import NODES, TARGETS, cluster, new_store, postgres, row
from benchmarks.engine.transitions import NEWEST, bare_postgres, ours
from benchmarks.metadata.approvals import EVENTS, fill, prepared, send_all
from fairwarning.core.commands import Approve
from fairwarning.core.decide import decide
from fairwarning.core.model import EventId, InstanceName, NodeId, Scope, ScopeId, instance_actor
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Moment
from fairwarning.stores.codec import Stored
from fairwarning.stores.postgres.database import QUERIES
from fairwarning.stores.postgres.store import CONNECTIONS_MAX
from fairwarning.stores.sql_store import plan_transaction
from fairwarning.stores.statements import Statement
from tests.support.postgres import PostgresServer

OPENING = b";".join(
    QUERIES[name]
    for name in ("begin", "check_writer", "enter_scope", "lock_scope", "roster", "clock")
)
Bare = tuple[ScopeId, tuple[Statement, ...]]


Span = tuple[float, float]
"""When a process began and ended its part, by the clock of all processes."""
_barrier: Barrier


def over_http(store: str, work: Sequence[tuple[Scope, EventId]]) -> float:
    """Returns approvals a second of 64 callers at each node."""
    orders = [[scope.roster.resource, id] for scope, id in work]
    # With a short lease, a slow machine would spend its time renewing those of started events.
    with cluster(store, "--lease", "10m") as nodes:
        urls = [node.metadata for node in nodes]
        parts = [orders[number :: len(nodes)] for number in range(len(nodes))]
        return len(work) / _together(send, urls, parts)


def _together(part: Callable[..., Span], *arguments: Sequence[object]) -> float:
    """Runs the parts in a process each, which begin together. Returns the seconds that all took."""
    context = get_context("spawn")
    with ProcessPoolExecutor(
        NODES, context, initializer=_join, initargs=(context.Barrier(NODES),)
    ) as pool:
        spans = list(pool.map(part, *arguments))
    return max(ended for _, ended in spans) - min(began for began, _ in spans)


def _join(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603, a pool has no other way to give something to its processes
    _barrier = barrier


def send(url: str, orders: list[list[str]]) -> Span:
    # Until here the processes load their modules.
    _barrier.wait()
    began = time.monotonic()
    uvloop.run(send_all(url, orders))
    return began, time.monotonic()


def bare(store: str, work: Sequence[tuple[Scope, EventId]]) -> float:
    now = SystemClock().now()
    transactions: list[Bare] = []
    for scope, id in work:
        by = instance_actor(InstanceName(scope.roster.resource))
        command = Approve(event_id=id, by=by)
        planned = plan_transaction(
            Stored(scope=replace(scope, revision=3), next_deadline_ms=None),
            lambda scope, moment, command=command: decide(  # type: ignore[misc]
                scope, command, moment.now_ms, node=NodeId("n")
            ),
            Moment(now_ms=now),
            by=by,
            why="",
        )
        transactions.append((scope.id, planned.statements))
    parts = [transactions[number::NODES] for number in range(NODES)]
    return len(work) / _together(run_bare, [store] * NODES, parts)


def run_bare(store: str, transactions: Sequence[Bare]) -> Span:
    _barrier.wait()
    began = time.monotonic()
    uvloop.run(_run_bare(store, transactions))
    return began, time.monotonic()


async def _run_bare(store: str, transactions: Sequence[Bare]) -> None:
    async def call(mine: Sequence[Bare]) -> None:
        async with await psycopg.AsyncConnection.connect(
            store, autocommit=True, cursor_factory=AsyncClientCursor
        ) as connection:
            cursor = AsyncClientCursor(connection)
            for scope_id, statements in mine:
                await cursor.execute(OPENING, {"id": scope_id, "newest": NEWEST})
                script = ";".join(
                    cursor.mogrify(QUERIES[each.name], each.values) for each in statements
                )
                await cursor.execute((script + ";COMMIT").encode())

    await asyncio.gather(
        *(call(transactions[number::CONNECTIONS_MAX]) for number in range(CONNECTIONS_MAX))
    )


def main(rounds: int = 5, events: int = EVENTS) -> None:
    with postgres() as server:
        three: dict[str, list[float]] = {"ours": [], "bare": []}
        for _ in range(rounds):
            print(".", end="", file=sys.stderr, flush=True)
            three["ours"].append(over_http(*_filled(server, events)))
            three["bare"].append(bare(*_filled(server, events)))
        _show(f"approvals over HTTP, {NODES} nodes, beside bare statements", three)
        one: dict[str, list[float]] = {"ours": [], "bare": []}
        for _ in range(rounds):
            print(".", end="", file=sys.stderr, flush=True)
            one["ours"].append(uvloop.run(ours(new_store(server), 64)))
            one["bare"].append(uvloop.run(bare_postgres(new_store(server), 64)))
        _show("transactions of one node, 64 callers, beside bare statements", one)


def _filled(server: PostgresServer, events: int) -> tuple[str, list[tuple[Scope, EventId]]]:
    store, work = new_store(server), prepared()[:events]
    uvloop.run(fill(store, work))
    return store, work


def _show(what: str, rates: dict[str, list[float]]) -> None:
    mine, theirs = statistics.median(rates["ours"]), statistics.median(rates["bare"])
    shown = f"{mine:,.0f}/s : {theirs:,.0f}/s = {mine / theirs:.2f}"
    row(what, shown, TARGETS["approvals"])
