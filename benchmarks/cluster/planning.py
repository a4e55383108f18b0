"""Measures polls of a server with a worker while its control plane plans a rollout of the fleet.

A client polls 200 times a second, first in peace, and then while another process asks for the
estimate of a rollout over all instances again and again.
"""

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from benchmarks.cluster.nodes import TARGETS, percentile, row
from tests.support.processes import serving

SETS, CAPACITY = 1_000, 100
SECONDS = 10.0
PAUSE_S = 0.005
_SET = '[[scale_set]]\nname = "set{}"\ncapacity = {}\n'
_POLL = (
    b"GET /vm/set0_0/metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"
    b"Host: 127.0.0.1\r\nMetadata: true\r\n\r\n"
)


def main(sets: int = SETS, seconds: float = SECONDS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fleet = Path(folder, "fleet.toml")
        fleet.write_text("test = true\n" + "".join(_SET.format(n, CAPACITY) for n in range(sets)))
        store = ("--store", f"sqlite:///{folder}/fw.db")
        with serving(*store, "--fleet", str(fleet), "--workers", "1", "--no-azure") as server:
            idle = polls(server.metadata, seconds)
            with planning(server.control):
                busy = polls(server.metadata, seconds)
    idle_ms, busy_ms = (percentile(each, 0.99) * 1000 for each in (idle, busy))
    row(
        f"p99 of polls while a rollout over {sets * CAPACITY:,} instances is planned",
        f"{busy_ms:.1f} : {idle_ms:.1f} ms = {busy_ms / idle_ms:.2f}",
        TARGETS["planning"],
    )


def polls(url: str, seconds: float) -> list[float]:
    """Returns the seconds that each poll took."""
    address = urlsplit(url)
    took = []
    with socket.create_connection((address.hostname, address.port)) as connection:
        until = time.perf_counter() + seconds
        while (began := time.perf_counter()) < until:
            connection.sendall(_POLL)
            answer = connection.recv(65_536)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            took.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)
    return took


@contextmanager
def planning(control: str) -> Iterator[None]:
    """Plans rollouts in another process, so that its work does not delay the polls of this one."""
    context = get_context("spawn")
    begun = context.Event()
    process = context.Process(target=plan, args=(control, begun))
    process.start()
    assert begun.wait(300), "no rollout could be planned"
    yield
    assert process.is_alive(), "planning has failed"
    process.kill()
    process.join()


def plan(control: str, begun: Event) -> None:
    body = {"type": "Reboot", "scopes": [], "duration": "5m"}
    with httpx.Client(trust_env=False, timeout=300) as client:
        while True:
            client.post(f"{control}/api/v1/rollouts/plan", json=body).raise_for_status()
            begun.set()
