"""A real server in a process of its own, and what it uses."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROGRAM = [sys.executable, "-m", "fairwarning"]


@dataclass(frozen=True, kw_only=True)
class Server:
    pid: int
    control: str
    metadata: str
    start_cpu_s: float
    """Processor time from the start of the process until it was ready."""
    start_s: float

    def cpu_s(self) -> float:
        """Return the processor time of the server and of its processes that have ended."""
        return _cpu_s(self.pid)

    def memory_mb(self, field: str = "VmRSS") -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition(f"{field}:")[2].split()[0]) / 1024

    def api(self) -> httpx.Client:
        return httpx.Client(base_url=f"{self.control}/api/v1", timeout=600)


def _cpu_s(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, stat[11:15])) / _TICKS_PER_S


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """Run a server on a store in `folder`, from its start to its end."""
    command = [
        *PROGRAM, "serve", "--json", "--store", f"sqlite:///{folder}/store.db",
        "--control", f"127.0.0.1:{_free_port()}", "--metadata", f"127.0.0.1:{_free_port()}",
        "--no-azure", *options,
    ]  # fmt: skip
    began = time.perf_counter()
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    try:
        ready: dict[str, Any] = json.loads(process.stdout.readline())
        yield Server(
            pid=process.pid,
            control=ready["control"],
            metadata=ready["metadata"][0],
            start_cpu_s=_cpu_s(process.pid),
            start_s=time.perf_counter() - began,
        )
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def fleet_file(folder: Path, scopes: int, per_scope: int) -> Path:
    """Write a test fleet of scale sets. Each scope is a placement group with one update domain."""
    groups = 10 if scopes % 10 == 0 and per_scope == 100 else 1
    sets = (
        f'[[scale_set]]\nname = "s{n:05}"\ncapacity = {groups * per_scope}\nupdate_domains = 1\n'
        for n in range(scopes // groups)
    )
    found = folder / "fleet.toml"
    found.write_text("test = true\n" + "".join(sets))
    return found
