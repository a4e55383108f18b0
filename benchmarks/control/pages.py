"""Measures `GET /api/v1/events` over 100,000 events, beside the store alone."""

import asyncio
import tempfile
import time
from pathlib import Path

import httpx
import uvloop

from benchmarks.control.events import EVENTS, PAGE, Case, cases, fill_sqlite, prepare, quantiles
from benchmarks.control.history import events, fleet
from fairwarning.engine.clocks import SystemClock
from fairwarning.node import Node, NodeSettings
from fairwarning.stores.sqlite import SqliteStore

ASKED = 200


def parameters(case: Case) -> httpx.QueryParams:
    choice = case.choice
    named = [("phase", choice.phases), ("type", choice.types), ("source", choice.sources)]
    found = [(name, value.value) for name, values in named for value in values]
    if choice.scope_id is not None:
        found.append(("scope", choice.scope_id))
    if choice.instance is not None:
        found.append(("instance", choice.instance))
    if case.before is not None:
        found.append(("after", f"{case.before.created_ms}_{case.before.event_id}"))
    return httpx.QueryParams([*found, ("limit", str(PAGE))])


async def measure(
    node: Node, api: httpx.AsyncClient, case: Case
) -> tuple[list[float], list[float]]:
    over_http, alone = [], []
    for _ in range(ASKED):
        began = time.perf_counter()
        answer = await api.get("/api/v1/events", params=parameters(case))
        over_http.append((time.perf_counter() - began) * 1e3)
        assert answer.status_code == 200, answer.text
        began = time.perf_counter()
        await node.store.events(case.choice, before=case.before, limit=PAGE)
        alone.append((time.perf_counter() - began) * 1e3)
    return over_http, alone


async def run(path: Path) -> None:
    past = events(fleet(), EVENTS)
    fill_sqlite(path, past)
    settings = NodeSettings(store_url=f"sqlite:///{path}")
    async with Node(settings) as node, httpx.AsyncClient(base_url=node.control_url) as api:
        ids = await node.store.scope_ids(limit=10_000)
        busy = next(id for id in ids if id.endswith("/web0"))
        quiet = next(id for id in ids if id.endswith("/web7"))
        worst = 0.0
        print(f"{'page':<36} HTTP p50     p99   store p50  ratio")
        for case in cases(past, busy, quiet):
            if case.choice.scope_id not in (None, busy, quiet):
                continue  # The API knows no such scope.
            over_http, alone = await measure(node, api, case)
            middle, high = quantiles(over_http)
            peer, _ = quantiles(alone)
            worst = max(worst, high)
            print(f"{case.name:<36} {middle:8.2f} {high:7.2f}   {peer:9.2f}  {middle / peer:5.1f}")
        print(f"worst p99 {worst:.2f} ms")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.db"
        asyncio.run(prepare(SqliteStore(path, SystemClock())))
        uvloop.run(run(path))


if __name__ == "__main__":
    main()
