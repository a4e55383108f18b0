"""Measures how much memory of the server one more waiting long-poll takes."""

import resource
import subprocess
import time
from dataclasses import dataclass

from benchmarks.metadata.environment import Programs
from benchmarks.metadata.process_usage import cpu_seconds, resident_bytes
from benchmarks.metadata.server_process import Running, ask, pinned
from benchmarks.metadata.settings import SOURCES, cores

_SPARE_FILES = 200
_IDLE_S = 1.0
_IDLE_CPU_S = 0.05
_SETTLE_S_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    held: int
    """How many still waited at the end."""
    bytes_each: float
    """Growth of the server's resident memory for each, without the kernel's."""
    before_bytes: int
    after_bytes: int


def allow_files(connections: int) -> None:
    """Raises the limit on open files for this process and those that it starts."""
    needed = connections + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise SystemExit(f"{connections} connections need `ulimit -Hn` >= {needed}; it is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


def hold(programs: Programs, server: Running, connections: int) -> Cost:
    tag = ask(server.address, server.path).tag
    before = resident_bytes(server.pid)
    options = ["-server", server.address, "-path", f"{server.path}&wait=300", "-tag", tag]
    limits = ["-sources", ",".join(SOURCES), "-connections", str(connections)]
    command = pinned([str(programs.hold), *options, *limits], cores()[1])
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        holder.stdout.readline()
        _wait_until_idle(server.pid)
        after = resident_bytes(server.pid)
        holder.stdin.close()
        held = int(holder.stdout.readline().split()[1])
    return Cost(
        held=held,
        bytes_each=(after - before) / connections,
        before_bytes=before,
        after_bytes=after,
    )


def _wait_until_idle(pid: int) -> None:
    """Waits until the server has read all that was sent and uses no more CPU."""
    deadline = time.monotonic() + _SETTLE_S_MAX
    while time.monotonic() < deadline:
        before = cpu_seconds(pid)
        time.sleep(_IDLE_S)
        if cpu_seconds(pid) - before <= _IDLE_CPU_S:
            return
    raise SystemExit(f"the server was still busy after {_SETTLE_S_MAX} s of nothing but waiting")
