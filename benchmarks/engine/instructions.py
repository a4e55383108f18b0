"""Counts the instructions of an approval and of polls, in this tree and in an older revision.

Times on a shared machine vary by more than a change costs; instructions do not. Each kind of
work is done twice under callgrind, a few times and many times, and the difference is divided
by the difference of the numbers, so start and stop are not in it. The clients are processes
of their own and are not counted.

    .venv/bin/python -m benchmarks.engine.instructions --before d977220
"""

import argparse
import asyncio
import http.client
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from fairwarning.boot import make_engine, make_metadata_server, make_store
from fairwarning.core.commands import Activate, Schedule
from fairwarning.core.model import EventId, EventType, InstanceName, operator_actor
from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.engine.clocks import SystemClock
from fairwarning.metadata.settings import EndpointRules

ROOT = Path(__file__).resolve().parents[2]
ME = operator_actor("benchmark")
POLLS = (200, 2200)
BY_ADDRESS = "poll by address"
NUMBERS = {"approval": (20, 140), "poll": POLLS, "poll with tag": POLLS, BY_ADDRESS: POLLS}
PATH = "/metadata/scheduledevents?api-version=2020-07-01"


def event_id(number: int) -> EventId:
    return EventId(f"00000000-0000-4000-8000-{number:012X}")


async def serve(kind: str, number: int) -> None:
    """The counted process: a server on SQLite, and a client beside it that does the work."""
    with tempfile.TemporaryDirectory() as folder:
        clock = SystemClock()
        store = make_store(f"sqlite:///{folder}/fw.db", clock)
        await store.open()
        engine = make_engine(store, clock)
        machines = number if kind == "approval" else 1
        addresses = ("127.0.0.1",) if kind == BY_ADDRESS else ()
        place = Place(test=True)
        fleet = [
            VirtualMachine(name=f"vm{n}", addresses=addresses, place=place) for n in range(machines)
        ]
        for n, scope in enumerate(await engine.declare(fleet, by=ME)):
            await engine.submit(scope.id, Activate(), by=ME)
            command = Schedule(
                event_id=event_id(n),
                type=EventType.REBOOT,
                targets=(InstanceName(f"vm{n}"),),
                duration_s=0,
            )
            await engine.submit(scope.id, command, by=ME)
        rules = EndpointRules(requests_per_second_max=0)
        server = await make_metadata_server(engine, store, clock, [("127.0.0.1", 0)], rules)
        await engine.start()
        server.start()
        address = server.urls[0].removeprefix("http://")
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.engine.instructions", "--client", address,
            "--kind", kind, "--number", str(number),
        )  # fmt: skip
        assert await client.wait() == 0
        await server.stop()
        await engine.stop()
        await store.close()


def ask(address: str, kind: str, number: int) -> None:
    connection = http.client.HTTPConnection(address)
    headers = {"Metadata": "true"}
    for n in range(number):
        if kind == "approval":
            body = f'{{"StartRequests":[{{"EventId":"{event_id(n)}"}}]}}'
            connection.request("POST", f"/vm/vm{n}{PATH}", body, headers)
        else:
            path = PATH if kind == BY_ADDRESS else f"/vm/vm0{PATH}"
            connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 304), answer.status
        if kind == "poll with tag":
            headers["If-None-Match"] = answer.headers["ETag"]


def count(kind: str, number: int, tree: Path) -> int:
    command = [
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable,
        "-m", "benchmarks.engine.instructions", "--kind", kind, "--number", str(number),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        sys.exit(f"{kind} failed under valgrind; is it installed?\n{done.stderr[-3000:]}")
    return int(found[1])


def per_piece(kind: str, tree: Path) -> float:
    few, many = NUMBERS[kind]
    return (count(kind, many, tree) - count(kind, few, tree)) / (many - few)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compare(revision: str, kinds: list[str]) -> None:
    with checked_out(revision) as before:
        for kind in kinds:
            old, new = per_piece(kind, before), per_piece(kind, ROOT)
            print(f"{kind:14} {old:12,.0f} → {new:12,.0f}   {new / old:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="the revision to compare with")
    parser.add_argument("--kind", choices=NUMBERS, help="only this kind of work")
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        ask(options.client, options.kind, options.number)
    elif options.number:
        uvloop.run(serve(options.kind, options.number))
    elif options.before:
        compare(options.before, [options.kind] if options.kind else list(NUMBERS))
    else:
        parser.error("say with --before which revision to compare with")


if __name__ == "__main__":
    main()
