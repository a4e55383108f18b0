"""Measures what a larger fleet costs: memory, start-up, a transition, a poll.

Each size runs in a process of its own, on SQLite, with the endpoint on loopback.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import uvloop

from benchmarks.engine.workload import ME, virtual_machines
from fairwarning.boot import make_engine, make_metadata_server, make_store
from fairwarning.core.commands import Cancel, Schedule
from fairwarning.core.model import EventId, EventType, InstanceName, ScopeId
from fairwarning.core.resources import expand
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.service import Engine
from fairwarning.metadata.settings import EndpointRules

SIZES = (1_000, 10_000, 100_000)
TRANSITIONS = 1_500
POLLS = 5_000
ROUNDS = 5


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def fill(url: str, size: int) -> None:
    store = make_store(url, SystemClock())
    await store.open()
    scopes = [scope for machine in virtual_machines(size) for scope in expand(machine)]
    for first in range(0, size, 1_000):
        await store.create(scopes[first : first + 1_000], by=ME)
    await store.close()


async def measure(url: str, size: int) -> dict[str, float]:
    clock = SystemClock()
    before = rss_bytes()
    began = time.perf_counter()
    store = make_store(url, clock)
    await store.open()
    engine = make_engine(store, clock)
    rules = EndpointRules(requests_per_second_max=0)
    server = await make_metadata_server(engine, store, clock, [("127.0.0.1", 0)], rules)
    await engine.start()
    server.start()
    start_s = time.perf_counter() - began
    memory = (rss_bytes() - before) / size
    ids = [ScopeId(id) for id in await store.scope_ids(limit=size)]
    dice = random.Random(1)
    transition_us = await _transitions(engine, dice.sample(ids, min(len(ids), TRANSITIONS // 2)))
    poll_us = await _polls(server.urls[0], [id.rpartition("/")[2] for id in dice.sample(ids, 50)])
    await server.stop()
    await engine.stop()
    await store.close()
    return {"start_s": start_s, "bytes": memory, "transition_us": transition_us, "poll_us": poll_us}


async def _transitions(engine: Engine, ids: list[ScopeId]) -> float:
    times = []
    for id in ids:
        name = InstanceName(id.rpartition("/")[2])
        event_id = EventId(str(uuid.uuid4()).upper())
        schedule = Schedule(event_id=event_id, type=EventType.FREEZE, targets=(name,))
        for command in (schedule, Cancel(event_id=event_id)):
            began = time.perf_counter()
            await engine.submit(id, command, by=ME)
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


async def _polls(url: str, names: list[str]) -> float:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    requests = [
        f"GET /vm/{name}/metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"
        f"Host: 127.0.0.1\r\nMetadata: true\r\n\r\n".encode()
        for name in names
    ]
    times = []
    for number in range(POLLS):
        began = time.perf_counter()
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
        times.append(time.perf_counter() - began)
    writer.close()
    return statistics.median(times[POLLS // 5 :]) * 1e6


def _measured(url: str, size: int) -> dict[str, float]:
    """Measures one size in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engine.growth", url, str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    if len(sys.argv) == 3:
        print(json.dumps(uvloop.run(measure(sys.argv[1], int(sys.argv[2])))))
        return
    rows: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        urls = {size: f"sqlite:///{folder}/{size}.db" for size in SIZES}
        for size, url in urls.items():
            uvloop.run(fill(url, size))
        # In turns, so that a slow minute hits all sizes alike.
        rounds = [{size: _measured(url, size) for size, url in urls.items()} for _ in range(ROUNDS)]
    for size in SIZES:
        names = rounds[0][size]
        rows[size] = {
            name: statistics.median(each[size][name] for each in rounds) for name in names
        }
        row = rows[size]
        print(
            f"{size:>7,} instances  start {row['start_s']:6.2f} s  {row['bytes']:6.0f} bytes each  "
            f"transition {row['transition_us']:6.0f} us  poll {row['poll_us']:5.0f} us",
            flush=True,
        )
    small, large = rows[SIZES[0]], rows[SIZES[-1]]
    for name in ("transition_us", "poll_us"):
        print(f"{name[:-3]} at {SIZES[-1]:,} / at {SIZES[0]:,}: {large[name] / small[name]:.2f}")


if __name__ == "__main__":
    main()
