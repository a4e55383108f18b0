"""Sends costly request bodies to the control plane, and measures polls of an instance.

`python -m benchmarks.attack.bodies` starts a server, polls one instance every few milliseconds,
first alone and then while each body is sent three times. It prints that instance's p50, p99 and
longest poll, what the bodies were answered, how long that took, and the server's peak memory
with that of the processes it starts. Each body meets a new server.
"""

import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.support.processes import Served, serving

QUIET_S = 3.0
POLL_EVERY_S = 0.003
TIMES = 3
_SAMPLE_S = 0.02
_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
_GROUP = f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/attack"
_VERSION = "?api-version=2024-11-01"
_SET = "Microsoft.Compute/virtualMachineScaleSets/s1"
_FLEET = 'test = true\n[[vm]]\nname = "neighbour"\n'


class Attack(NamedTuple):
    name: str
    method: str
    path: str
    media_type: str
    body: bytes
    fleet: str = _FLEET
    """The fleet file of the server that gets the body."""


def attacks() -> Iterator[Attack]:
    mega = 4 * 1024 * 1024 - 1024
    plan = ("POST", "/api/v1/fleet/plan", "application/toml")
    yield Attack("TOML, key of spaced parts, 32 kB", *plan, _spaced_key(32 * 1024))
    yield Attack("TOML, key of spaced parts, 160 kB", *plan, _spaced_key(160 * 1024))
    yield Attack("TOML, key of quoted parts, 160 kB", *plan, b'"a".' * 40_000 + b"a=1")
    yield Attack("TOML, keys, 4 MB", *plan, b"".join(b"k%d=1\n" % n for n in range(400_000)))
    yield Attack("TOML, one number, 4 MB", *plan, b"a = " + b"1" * mega)
    yield Attack("TOML, 60,000 machines", *plan, _machines(60_000))
    arm = ("GET", _GROUP + _VERSION, "application/json")
    yield Attack("ARM GET, comment of stars, 4 MB", *arm, b"{/" + b"*" * mega)
    yield Attack("ARM GET, names, 4 MB", *arm, b"{" + b"a " * (mega // 2))
    deploy = f"{_GROUP}/providers/Microsoft.Resources/deployments/d{_VERSION}"
    put = ("PUT", deploy, "application/json")
    yield Attack("ARM PUT, comment of stars, 4 MB", *put, b"{/" + b"*" * mega)
    yield Attack("ARM PUT, names, 4 MB", *put, b"{" + b"a " * (mega // 2))
    yield Attack("ARM PUT, empty lists, 4 MB", *put, b'{"a":[' + b"[]," * (mega // 3) + b"[]]}")
    yield Attack("ARM PUT, escaped quotes, 4 MB", *put, b"{a:" + b'"' + b'\\"' * (mega // 2))
    yield Attack("ARM PUT, nested copy loops", *put, _loops())
    yield Attack("ARM PUT, long array", *put, _long_array(900_000))
    yield Attack("ARM PUT, long array, accepted", *put, _long_array(190_000))
    many = [{f"k{number}": "v"} for number in range(60_000)]
    yield Attack("ARM PUT, many objects", *put, _deployment({"variables": {"many": many}}))
    outputs = {"many": {"type": "array", "value": many}}
    yield Attack("ARM PUT, a large output", *put, _deployment({"outputs": outputs}))
    yield from _attacks_on_large_fleets()


def _attacks_on_large_fleets() -> Iterator[Attack]:
    """Yields small bodies that make the server read 10,000 instances that it has already."""
    sets = "".join(f'[[scale_set]]\nname = "s{n}"\ncapacity = 1000\n' for n in range(10))
    vms = "".join(f'[[vm]]\nname = "v{n}"\n' for n in range(10_000))
    for kind, fleet in (("sets", _FLEET + sets), ("machines", _FLEET + vms)):
        json_to = ("POST", "/api/v1/rollouts/plan", "application/json")
        yield Attack(f"same fleet again, {kind}", "PUT", "/api/v1/fleet", "application/toml",
                     fleet.encode(), fleet)  # fmt: skip
        yield Attack(f"one machine more, {kind}", "POST", "/api/v1/fleet", "application/toml",
                     b'[[vm]]\nname = "other"\n', fleet)  # fmt: skip
        yield Attack(f"rollout through all, {kind}", *json_to,
                     b'{"type": "Reboot"}', fleet)  # fmt: skip
    resize = f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/default/providers/{_SET}{_VERSION}"
    yield Attack("smaller set", "PATCH", resize, "application/json",
                 b'{"sku": {"capacity": 10}}', _FLEET + sets)  # fmt: skip


def _spaced_key(size: int) -> bytes:
    return b"a . " * (size // 4 - 2) + b"a = 1"


def _machines(count: int) -> bytes:
    return b"".join(b'[[vm]]\nname = "vm-%d"\n' % n for n in range(count))


def _loops() -> bytes:
    inner = {"copy": [{"name": "b", "count": 800, "input": "[concat('x', copyIndex('b'))]"}]}
    variables = {"copy": [{"name": "a", "count": 800, "input": inner}]}
    return _deployment({"variables": variables, "resources": []})


def _long_array(count: int) -> bytes:
    variables = {"many": [0] * count}
    return _deployment({"variables": variables, "resources": []})


def _deployment(template: object) -> bytes:
    return json.dumps({"properties": {"mode": "Incremental", "template": template}}).encode()


@contextmanager
def server(fleet_text: str = _FLEET) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        fleet = Path(folder) / "fleet.toml"
        fleet.write_text(fleet_text)
        with serving("--fleet", str(fleet)) as ready:
            yield ready


class Polls:
    """One instance that polls on a kept connection until it is told to end."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self.took_ms: list[float] = []
        self.failed = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Polls":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        path = "/vm/neighbour/metadata/scheduledevents?api-version=2020-07-01"
        connection = http.client.HTTPConnection(str(self._url.hostname), self._url.port or 0)
        while not self._over.wait(POLL_EVERY_S):
            began = time.perf_counter()
            try:
                connection.request("GET", path, headers={"Metadata": "true"})
                answer = connection.getresponse()
                answer.read()
                self.failed += answer.status != 200
            except OSError:
                self.failed += 1
                connection.close()
            self.took_ms.append((time.perf_counter() - began) * 1000)


class Memory:
    """Samples the largest resident memory of a process with all that it starts."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.peak_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            pids = [self._pid, *_children(self._pid)]
            self.peak_mb = max(self.peak_mb, sum(map(_resident_mb, pids)))


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def send(url: str, attack: Attack) -> str:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port or 0, timeout=120)
    try:
        headers = {"Content-Type": attack.media_type}
        connection.request(attack.method, attack.path, attack.body, headers)
        return str(connection.getresponse().status)
    except OSError as problem:
        return type(problem).__name__
    finally:
        connection.close()


def run(attack: Attack) -> str:
    with server(attack.fleet) as found:
        body = b'{"location": "westeurope"}'
        send(found.control, Attack("", "PUT", _GROUP + _VERSION, "application/json", body))
        with Polls(found.metadata) as alone:
            time.sleep(QUIET_S)
        with Memory(found.pid) as memory, Polls(found.metadata) as beside:
            began = time.perf_counter()
            said = {send(found.control, attack) for _ in range(TIMES)}
            took_s = (time.perf_counter() - began) / TIMES
        return row(attack.name, alone, beside, "/".join(sorted(said)), took_s, memory.peak_mb)


def row(name: str, alone: Polls, beside: Polls, said: str, took_s: float, peak_mb: float) -> str:
    return (
        f"{name:36} {shown(alone.took_ms)} | {shown(beside.took_ms)} {beside.failed:6} | "
        f"{said:>10} {took_s:7.2f} s {peak_mb:7.0f} MB"
    )


def shown(took_ms: Sequence[float]) -> str:
    if len(took_ms) < 2:
        return f"{'-':>7} {'-':>7} {max(took_ms, default=0.0):7.1f}"
    parts = statistics.quantiles(took_ms, n=100)
    return f"{parts[49]:7.2f} {parts[98]:7.1f} {max(took_ms):7.1f}"


def main(wanted: Sequence[str]) -> None:
    """Runs the attacks that have one of these words in their names, or all."""
    heads = f"{'beside the attack, failed':>30} | {'answer':>10} {'each':>9} {'peak':>10}"
    print(f"{'polls of another instance, in ms':36} {'alone: p50, p99, max':>23} | {heads}")
    chosen = (each for each in attacks() if not wanted or any(w in each.name for w in wanted))
    for attack in chosen:
        print(run(attack), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
