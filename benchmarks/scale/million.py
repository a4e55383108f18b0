"""Runs a fleet of a million instances once: apply, memory, start, a change, a rollout.

`--scopes` and `--per-scope` choose another size. It needs some gigabytes of memory and disk.
"""

import argparse
import random
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.scale.server import PROGRAM, Server, fleet_file, serving

CHANGES = 100
AT_ONCE = 500


def apply_fleet(server: Server, file: Path) -> None:
    used, began = server.cpu_s(), time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*PROGRAM, "fleet", "apply", str(file), "--yes", "--json", "--url", server.control],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    served = server.cpu_s() - used
    print(
        f"fleet apply: {client + served:.1f} s of CPU (client {client:.1f}, server and its "
        f"processes {served:.1f}), {time.perf_counter() - began:.0f} s; the server's peak "
        f"{server.memory_mb('VmHWM'):.0f} MB",
        flush=True,
    )


def change_to_visible(server: Server, names: list[str]) -> None:
    """Prints how long it takes from `POST /events` to the document of a VM that holds a poll."""
    took = []
    path = "/metadata/scheduledevents?api-version=2020-07-01"
    headers = {"Metadata": "true"}
    with server.api() as api, httpx.Client(base_url=server.metadata, headers=headers) as vm:
        for name in names:
            vm.get(f"/vm/{name}{path}")
            began = time.perf_counter()
            body = {"type": "Freeze", "targets": [name], "notice": "1h"}
            made = api.post("/events", json=body).raise_for_status().json()
            while made["id"] not in vm.get(f"/vm/{name}{path}").text:
                pass
            took.append((time.perf_counter() - began) * 1000)
            api.post(f"/events/{made['id']}/cancel").raise_for_status()
    took.sort()
    print(
        f"change to visible: p50 {statistics.median(took):.1f} ms, p99 "
        f"{took[int(len(took) * 0.99)]:.1f} ms of {len(took)}",
        flush=True,
    )


def roll_out(server: Server, seconds: float) -> None:
    used, began = server.cpu_s(), time.perf_counter()
    body = {"type": "Freeze", "notice": "0s", "duration": "0s", "scopesAtOnce": AT_ONCE}
    with server.api() as api:
        made = api.post("/rollouts", json=body).raise_for_status().json()
        print(
            f"rollout created: {sum(made['counts'].values()):,} steps, "
            f"{server.cpu_s() - used:.1f} s of CPU, {time.perf_counter() - began:.1f} s",
            flush=True,
        )
        now = made
        while now["phase"] == "running" and time.perf_counter() - began < seconds:
            time.sleep(2)
            asked = time.perf_counter()
            now = api.get(f"/rollouts/{made['id']}").raise_for_status().json()
            answered_s = time.perf_counter() - asked
    print(
        f"rollout {now['phase']}: {now['counts']}, {server.cpu_s() - used:.1f} s of CPU, "
        f"{time.perf_counter() - began:.0f} s; the last answer about it took "
        f"{answered_s * 1000:.0f} ms; memory {server.memory_mb():.0f} MB, peak "
        f"{server.memory_mb('VmHWM'):.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scopes", type=int, default=10_000)
    parser.add_argument("--per-scope", type=int, default=100)
    parser.add_argument("--rollout-seconds", type=float, default=900)
    chosen = parser.parse_args()
    print(f"{chosen.scopes * chosen.per_scope:,} instances in {chosen.scopes:,} scopes", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = fleet_file(folder, chosen.scopes, chosen.per_scope)
        with serving(folder) as server:
            apply_fleet(server, file)
        with serving(folder) as server:
            print(
                f"start: {server.start_cpu_s:.1f} s of CPU, {server.start_s:.1f} s; memory "
                f"{server.memory_mb():.0f} MB; store "
                f"{(folder / 'store.db').stat().st_size / 1e6:.0f} MB",
                flush=True,
            )
            groups = 10 if chosen.per_scope == 100 and chosen.scopes % 10 == 0 else 1
            sets = chosen.scopes // groups
            dice = random.Random(1)
            names = [f"s{n:05}_0" for n in dice.sample(range(sets), min(sets, CHANGES))]
            change_to_visible(server, names)
            roll_out(server, chosen.rollout_seconds)


if __name__ == "__main__":
    main()
