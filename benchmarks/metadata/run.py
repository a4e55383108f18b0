"""Compares the metadata endpoint with nginx, Go and Flask: `python3 benchmarks/metadata/run.py`.

Everything stays on loopback addresses, and every step is bounded in count and time.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.metadata import table
from benchmarks.metadata.environment import FOLDER, Programs, make
from benchmarks.metadata.long_polls import Cost, allow_files, hold
from benchmarks.metadata.ours import ours
from benchmarks.metadata.peers import PEERS
from benchmarks.metadata.rounds import SHAPES, Score, compare
from benchmarks.metadata.server_process import Running, ask
from benchmarks.metadata.settings import DOCUMENT

_OURS = "ours"
_HOLD = "hold"
_HOLDERS = (_OURS, "go")


def main() -> None:
    options = _options()
    peers = _named(options.only, [_OURS, *PEERS])
    parts = _named(options.only, [*SHAPES, _HOLD])
    programs = make(options.environment, options.nginx)
    scores: dict[str, dict[str, Score]] = {}
    costs: dict[str, Cost] = {}
    if shapes := [part for part in parts if part in SHAPES]:
        with ExitStack() as stack:
            servers = _start(stack, programs, peers)
            scores = compare(
                programs,
                servers,
                shapes,
                rounds=options.rounds,
                seconds=options.seconds,
                rate=options.rate,
            )
    if _HOLD in parts:
        allow_files(options.connections)
        for name in (each for each in _HOLDERS if each in peers):
            with ExitStack() as stack:
                (server,) = _start(stack, programs, [name])
                costs[name] = hold(programs, server, options.connections)
    _report(options, scores, costs)


def _options() -> argparse.Namespace:
    names = [_OURS, *PEERS, *SHAPES, _HOLD]
    parser = argparse.ArgumentParser(description="The metadata endpoint beside its peers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each peer in each round")
    parser.add_argument("--rate", type=float, default=10_000, help="requests a second, if paced")
    parser.add_argument("--connections", type=int, default=10_000, help="of the long-polls")
    only = f"peers or parts, of {', '.join(names)}"
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="NAME", help=only)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--environment", type=Path, default=FOLDER, help="where programs are kept")
    parser.add_argument("--nginx", type=Path, help="another nginx than the wheel's")
    return parser.parse_args()


def _named(only: Sequence[str], names: Sequence[str]) -> list[str]:
    """Returns the chosen names; all of them if none is chosen."""
    return [name for name in names if name in only] or list(names)


def _start(stack: ExitStack, programs: Programs, names: Sequence[str]) -> list[Running]:
    """Starts ours first, because the others serve the same bytes."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    document = DOCUMENT
    servers = []
    for name in names:
        starting: AbstractContextManager[Running]
        starting = ours(programs) if name == _OURS else PEERS[name](programs, folder, document)
        server = stack.enter_context(starting)
        answer = ask(server.address, server.path)
        assert len(json.loads(answer.body)["Events"]) == 1, f"{name} answered {answer}"
        if name == _OURS:
            document = answer.body
        assert answer.body == document, f"{name} answered {answer}"
        servers.append(server)
    return servers


def _report(
    options: argparse.Namespace, scores: dict[str, dict[str, Score]], costs: dict[str, Cost]
) -> None:
    if options.json:
        polls = {
            shape: {name: asdict(score) for name, score in row.items()}
            for shape, row in scores.items()
        }
        waits = {name: asdict(cost) for name, cost in costs.items()}
        print(json.dumps({"polls": polls, "waits": waits}))
        return
    tables = [table.polls(shape, row) for shape, row in scores.items()]
    if costs:
        tables.append(table.waits(options.connections, costs))
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
