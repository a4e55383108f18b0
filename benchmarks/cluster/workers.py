"""Measures polls per second of processor time with one and two workers, beside nginx.

All servers run on one core and the load on another, as in `benchmarks/metadata`. The processor
time is that of all processes of the server.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from benchmarks.cluster.nodes import TARGETS, row
from benchmarks.metadata.environment import FOLDER, Programs, make
from benchmarks.metadata.peers import PEERS
from benchmarks.metadata.rounds import compare
from benchmarks.metadata.server_process import Running, ask, started, wait_until_answering
from benchmarks.metadata.settings import PATH, SERVER_HOST, SOURCES

_FLEET = """
test = true
[[availability_set]]
name = "web"
update_domains = 2
{members}
"""
_MEMBER = """
[[availability_set.instances]]
name = "web-{number}"
addresses = ["{address}"]
"""


@contextmanager
def ours(programs: Programs, folder: Path, workers: int) -> Iterator[tuple[Running, str]]:
    """Runs a server, and returns it with the URL of its control plane."""
    home = folder / f"workers-{workers}"
    home.mkdir()
    fleet = home / "fleet.toml"
    members = (_MEMBER.format(number=n, address=each) for n, each in enumerate(SOURCES))
    fleet.write_text(_FLEET.format(members="".join(members)))
    command = [
        str(programs.python), "-m", "fairwarning", "serve", "--json", "--no-azure",
        "--store", f"sqlite:///{home / 'fw.db'}", "--fleet", str(fleet),
        "--metadata", f"{SERVER_HOST}:0", "--control", f"{SERVER_HOST}:0",
        "--workers", str(workers), "--log-level", "error",
    ]  # fmt: skip
    with started(command) as process:
        assert process.stdout is not None
        ready = httpx.Response(200, content=process.stdout.readline()).json()
        event = {"type": "Reboot", "targets": ["web-1"], "notice": "1h"}
        httpx.post(
            f"{ready['control']}/api/v1/events", json=event, trust_env=False
        ).raise_for_status()
        address = ready["metadata"][0].removeprefix("http://")
        name = f"{workers} workers" if workers else "ours"
        yield wait_until_answering(Running(name, process.pid, address, PATH)), ready["control"]


def spread(control: str) -> list[int]:
    """Returns how many answers each worker has given."""
    text = httpx.get(f"{control}/metrics", trust_env=False, timeout=30).text
    found = re.findall(r"^fairwarning_metadata_answers_total\{.*\} (\S+)$", text, re.MULTILINE)
    return [int(float(each)) for each in found]


def main(rounds: int = 5, seconds: float = 2.0) -> None:
    programs = make(FOLDER, None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = [stack.enter_context(ours(programs, folder, number)) for number in (0, 1, 2)]
        servers = [server for server, _ in found]
        document = ask(servers[0].address, PATH).body
        servers += [
            stack.enter_context(PEERS[name](programs, folder, document))
            for name in ("nginx", "nginx-deferred")
        ]
        scores = compare(
            programs, servers, ("kept", "fresh"), rounds=rounds, seconds=seconds, rate=0
        )
        counts = spread(found[2][1])
    kept, fresh = scores["kept"], scores["fresh"]
    for shape, score in scores.items():
        ratio = score["2 workers"].per_cpu_s / score["1 workers"].per_cpu_s
        shown = f"{score['2 workers'].per_cpu_s:,.0f} : {score['1 workers'].per_cpu_s:,.0f}"
        row(
            f"polls per CPU-second, two workers beside one, {shape} connections",
            f"{shown} = {ratio:.2f}",
            TARGETS["workers"],
        )
    for name in ("ours", "2 workers"):
        what = "one process" if name == "ours" else "two workers"
        ratio = kept[name].per_cpu_s / kept["nginx"].per_cpu_s
        row(f"the same, {what}, kept, beside nginx", f"{ratio:.2f}", TARGETS["kept"])
        ratio = fresh[name].per_cpu_s / fresh["nginx-deferred"].per_cpu_s
        row(f"the same, {what}, fresh, beside nginx deferred", f"{ratio:.2f}", TARGETS["deferred"])
    row("answers of the two workers, smaller to larger", f"{min(counts) / max(counts):.2f}")
