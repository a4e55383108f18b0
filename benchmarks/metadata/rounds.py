"""Polls every peer in turn, round after round, so that noise hits all of them alike."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.metadata.environment import Programs
from benchmarks.metadata.process_usage import cpu_seconds
from benchmarks.metadata.server_process import Running, pinned
from benchmarks.metadata.settings import CONNECTIONS, SOURCES, cores

SHAPES = {
    "kept": "kept connections",
    "fresh": "a new connection per request",
    "paced": "the same, paced",
    "eager": "the same, sent with connect",
}
"""Fresh connections cost the client more than a quick server, so the load sets their pace, and
what batches a server gets to see depends on its speed. Paced, all get the same."""
_WARM_S = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    per_cpu_s: float
    """Requests per second of the server's processor time."""
    per_s: float
    """Requests per second by the clock."""
    load: float
    """How busy the load's own core was: at 1 it, not the server, sets the pace."""
    p50_us: float
    p99_us: float
    bytes: int
    """The size of one answer, with its head."""


def compare(
    programs: Programs,
    servers: Sequence[Running],
    shapes: Sequence[str],
    *,
    rounds: int,
    seconds: float,
    rate: float,
) -> dict[str, dict[str, Score]]:
    pairs = [(shape, server) for shape in shapes for server in servers if _applies(shape, server)]
    for shape, server in pairs:
        _poll(programs, server, shape, _WARM_S, rate)
    scores: dict[tuple[str, str], list[Score]] = {}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for shape, server in pairs:
            score = _poll(programs, server, shape, seconds, rate)
            scores.setdefault((shape, server.name), []).append(score)
    return {
        shape: {name: _median(each) for (at, name), each in scores.items() if at == shape}
        for shape in shapes
    }


def _applies(shape: str, server: Running) -> bool:
    """Whether the shape applies: deferred accepting matters to new connections only."""
    return shape != "kept" or server.name != "nginx-deferred"


def _poll(programs: Programs, server: Running, shape: str, seconds: float, rate: float) -> Score:
    options = ["-server", server.address, "-path", server.path, "-sources", ",".join(SOURCES)]
    limits = ["-connections", str(CONNECTIONS), "-seconds", str(seconds)]
    fresh = ["-fresh"] if shape != "kept" else []
    paced = ["-rate", str(rate)] if shape == "paced" else []
    eager = ["-eager"] if shape == "eager" else []
    command = [str(programs.load), *options, *limits, *fresh, *paced, *eager]
    before = cpu_seconds(server.pid)
    done = subprocess.run(
        pinned(command, cores()[1]), stdout=subprocess.PIPE, check=True, timeout=seconds + 30
    )
    used = cpu_seconds(server.pid) - before
    said = json.loads(done.stdout)
    return Score(
        per_cpu_s=said["requests"] / max(used, 0.01),
        per_s=said["requests"] / said["seconds"],
        load=said["cpu"] / said["seconds"],
        p50_us=said["p50_us"],
        p99_us=said["p99_us"],
        bytes=said["bytes"],
    )


def _median(scores: Sequence[Score]) -> Score:
    rows = [asdict(score) for score in scores]
    middle = {name: median(row[name] for row in rows) for name in rows[0]}
    return Score(**middle)
