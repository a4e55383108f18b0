"""Measures memory and CPU of an agent that waits, beside the smallest loop that polls as often.

    .venv/bin/python -m benchmarks.agent.idle [SECONDS]

Three agents at once: one at a service that cannot hold answers and so is asked once a second, one
at Fairwarning, which holds them; and the peer, a loop with urllib that asks once a second.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30.0
WARM_UP_S = 5.0
RSS_MIB_MAX = 40.0
CPU_PERCENT_MAX = 0.1
_PLAIN_SERVICE = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # an answer in one piece, as services give it
    def do_GET(self):
        body = b'{"DocumentIncarnation":1,"Events":[]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
"""
_PEER = """
import json, sys, time, urllib.request
ask = urllib.request.Request(sys.argv[1] + "/metadata/scheduledevents?api-version=2020-07-01",
                             headers={"Metadata": "true"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
while True:
    with opener.open(ask, timeout=10) as answer:
        json.load(answer)
    print("watching", flush=True)
    time.sleep(1)
"""
_CONFIG = """
endpoint = "{url}"
name = "web-0"
state = "{folder}/{name}.json"
listen = "127.0.0.1:0"
[[rule]]
name = "drain"
  [[rule.scheduled]]
  run = ["true"]
"""


@dataclass(frozen=True, slots=True)
class Cost:
    rss_mib: float
    cpu_percent: float


def main(seconds: float) -> int:
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        plain = running.enter_context(_started([sys.executable, "-c", _PLAIN_SERVICE]))
        plain_url = _first_line(plain).strip()
        serve = ["serve", "--store", "memory:", "--metadata", "127.0.0.1:0", "--control",
                 "127.0.0.1:0", "--json"]  # fmt: skip
        ours = running.enter_context(_started([sys.executable, "-m", "fairwarning", *serve]))
        held_url = json.loads(_first_line(ours))["metadata"][0] + "/vm/web-0"
        asking = {
            "agent, one poll a second": _agent(folder, "polling", plain_url),
            "agent, held answers": _agent(folder, "held", held_url),
            "peer: a loop with urllib": [sys.executable, "-c", _PEER, plain_url],
        }
        started = {
            name: running.enter_context(_started(command)) for name, command in asking.items()
        }
        for process in started.values():
            _first_line(process)
        time.sleep(WARM_UP_S)
        return _tell(_measured({name: each.pid for name, each in started.items()}, seconds))


def _agent(folder: Path, name: str, url: str) -> list[str]:
    file = folder / f"{name}.toml"
    file.write_text(_CONFIG.format(url=url, folder=folder, name=name))
    return [sys.executable, "-m", "fairwarning", "agent", "--config", str(file)]


@contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _first_line(process: subprocess.Popen[str]) -> str:
    """Returns the line that says that the process is ready."""
    assert process.stdout is not None
    for line in process.stdout:
        if "watching" in line or line.startswith(("http://", '{"ready"')):
            return line
    raise RuntimeError(f"{process.args!r} ended before it was ready")


def _measured(pids: dict[str, int], seconds: float) -> dict[str, Cost]:
    before = {name: _cpu_s(pid) for name, pid in pids.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took_s = time.monotonic() - began
    return {
        name: Cost(_rss_mib(pid), 100 * (_cpu_s(pid) - before[name]) / took_s)
        for name, pid in pids.items()
    }


def _cpu_s(pid: int) -> float:
    """Returns the CPU time of all threads, from nanoseconds, as ticks are too coarse here."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


def _rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _tell(found: dict[str, Cost]) -> int:
    peer = next(cost for name, cost in found.items() if name.startswith("peer"))
    print(f"{'':28} {'memory':>11} {'/ peer':>7} {'of a core':>10} {'/ peer':>7}")
    for name, cost in found.items():
        print(
            f"{name:28} {cost.rss_mib:7.1f} MiB {cost.rss_mib / peer.rss_mib:7.2f} "
            f"{cost.cpu_percent:8.3f} % {cost.cpu_percent / peer.cpu_percent:7.2f}"
        )
    worst = max(found.values(), key=lambda cost: cost.rss_mib)
    busiest = max(
        (cost for cost in found.values() if cost is not peer), key=lambda c: c.cpu_percent
    )
    is_met = worst.rss_mib <= RSS_MIB_MAX and busiest.cpu_percent <= CPU_PERCENT_MAX
    print(f"at most {RSS_MIB_MAX:g} MiB and {CPU_PERCENT_MAX} %: {'met' if is_met else 'NOT MET'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
