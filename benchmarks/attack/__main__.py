"""Attacks the server, and measures what other instances notice: `python -m benchmarks.attack`.

Each attack meets a server of its own. First its neighbours poll in peace, then under attack: first
the metadata endpoint's (`pipelining.py`), then costly bodies and many connections for the control
plane (`bodies.py`, `connections.py`).
Everything stays on loopback addresses, and every step is bounded in count and time.
"""

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.attack import bodies, connections, pipelining, servers
from benchmarks.attack.model import Attack, Target
from benchmarks.attack.neighbours import Times, poll, quantile
from benchmarks.metadata.environment import ROOT
from benchmarks.metadata.process_usage import peak_bytes
from benchmarks.metadata.settings import cores

ATTACKS = [*pipelining.ATTACKS]
"""A module of attacks has a list like this one; name it here."""
_END_S_MAX = 60
_WARM_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    server: str
    attack: str
    achieved: str
    calm: Times
    attacked: Times
    calm_bytes: int
    """The server's peak memory before the attack, and then after it."""
    peak_bytes: int


def main() -> None:
    options = _options()
    os.sched_setaffinity(0, {cores()[1]})
    chosen = [each for each in ATTACKS if not options.only or each.name in options.only]
    rows = []
    for attack in chosen:
        with servers.ours(Path(sys.executable), options.tree, attack.options) as target:
            rows.append(_measure(attack, target, options.seconds))
        _print(rows[-1], as_json=options.json)
        if attack.also_nginx:
            with servers.nginx() as target:
                rows.append(_measure(attack, target, options.seconds))
            _print(rows[-1], as_json=options.json)
    if not options.only and not options.json:
        # Their servers have both cores, and start processes of their own.
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        bodies.main([])
        connections.main([])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each attack, and before it")
    names = [each.name for each in ATTACKS]
    only = f"of {'; '.join(names)}"
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="ATTACK", help=only)
    tree = "the working tree whose server is attacked (default: this one)"
    parser.add_argument("--tree", type=Path, default=ROOT, help=tree)
    parser.add_argument("--json", action="store_true", help="one JSON object for each row")
    return parser.parse_args()


def _measure(attack: Attack, target: Target, seconds: float) -> Row:
    poll(target, _WARM_S)
    calm = poll(target, seconds)
    calm_bytes = peak_bytes(target.pid)
    with _under(attack, target, seconds + _WARM_S) as hear:
        attacked = poll(target, seconds)
        achieved = hear()
    return Row(
        server=target.name,
        attack=attack.name,
        achieved=achieved,
        calm=calm,
        attacked=attacked,
        calm_bytes=calm_bytes,
        peak_bytes=peak_bytes(target.pid),
    )


@contextmanager
def _under(attack: Attack, target: Target, seconds: float) -> Iterator[Callable[[], str]]:
    """Attacks from another process, and yields a call that waits for its result."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_attack, args=(attack, target, seconds, theirs))
    process.start()

    def hear() -> str:
        assert ours.poll(seconds + _END_S_MAX), "the attack never ended"
        return str(ours.recv())

    try:
        yield hear
    finally:
        process.terminate()
        process.join()


def _attack(attack: Attack, target: Target, seconds: float, said: Connection) -> None:
    # The neighbours share a core with it, and it is the server's delays that count, not its.
    os.nice(19)
    said.send(attack.run(target, seconds))


def _print(row: Row, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(row)), flush=True)
        return
    kept = _change(row.calm.kept, row.attacked.kept)
    fresh = _change(row.calm.fresh, row.attacked.fresh)
    memory = f"{row.calm_bytes / 2**20:.0f} → {row.peak_bytes / 2**20:.0f} MiB"
    print(
        f"{row.server:5}  {row.attack}: {row.achieved}\n"
        f"       kept {kept}\n       fresh {fresh}\n       peak memory {memory}",
        flush=True,
    )


def _change(calm: list[float], attacked: list[float]) -> str:
    shares = {"p50": 0.5, "p99": 0.99, "max": 1}
    return ", ".join(
        f"{name} {quantile(calm, share):.2f} → {quantile(attacked, share):.2f} ms"
        for name, share in shares.items()
    )


if __name__ == "__main__":
    main()
