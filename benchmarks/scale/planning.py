"""Measures polls while the control plane plans and creates a rollout over 100,000 instances.

The server runs with two workers, which only answer polls. Idle and planning rounds take turns, so
that a slow minute of the machine hits both alike. It prints the ratio of their p99.
"""

import argparse
import http.client
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.scale.server import PROGRAM, Server, fleet_file, serving

SPEC = {"type": "Freeze", "notice": "1h", "scopesAtOnce": 100}
POLLS_PER_S = 500
PATH = "/vm/s00000_0/metadata/scheduledevents?api-version=2020-07-01"


def polls_while(server: Server, work: threading.Event) -> list[float]:
    """Poll on one kept connection at a steady rate until `work` is set. Returns milliseconds."""
    url = urlsplit(server.metadata)
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    took = []
    while not work.is_set():
        began = time.perf_counter()
        connection.request("GET", PATH, headers={"Metadata": "true"})
        connection.getresponse().read()
        spent = time.perf_counter() - began
        took.append(spent * 1000)
        time.sleep(max(0.0, 1 / POLLS_PER_S - spent))
    connection.close()
    return took


def p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]


def idle_round(server: Server, seconds: float) -> list[float]:
    over = threading.Event()
    threading.Timer(seconds, over.set).start()
    return polls_while(server, over)


def planning_round(server: Server) -> list[float]:
    """Poll while a rollout is planned, created and cancelled in another thread."""
    over = threading.Event()

    def plan() -> None:
        try:
            with server.api() as api:
                api.post("/rollouts/plan", json=SPEC).raise_for_status()
                made = api.post("/rollouts", json=SPEC).raise_for_status().json()
                api.post(f"/rollouts/{made['id']}/cancel").raise_for_status()
        finally:
            over.set()

    threading.Thread(target=plan).start()
    return polls_while(server, over)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scopes", type=int, default=1_000)
    parser.add_argument("--per-scope", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = fleet_file(folder, chosen.scopes, chosen.per_scope)
        with serving(folder, "--workers", str(chosen.workers)) as server:
            subprocess.run(
                [*PROGRAM, "fleet", "apply", str(file), "--yes", "--url", server.control],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            idle_round(server, 1)
            for _ in range(chosen.rounds):
                planning = planning_round(server)
                idle = idle_round(server, 5)
                ratios.append(p99(planning) / p99(idle))
                print(
                    f"p99 idle {p99(idle):.2f} ms of {len(idle):,} polls, planning "
                    f"{p99(planning):.2f} ms of {len(planning):,}: {ratios[-1]:.2f} x",
                    flush=True,
                )
    print(f"median {statistics.median(ratios):.2f} x idle")


if __name__ == "__main__":
    main()
