"""The command line of the suite."""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairwarning.common.durations import parse_duration_ms
from tools.cluster.variants import VARIANTS, fault_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    is_installing: bool
    load_s: float
    round_s: float
    lease_s: float
    seed: str
    only: Sequence[str]
    variants: Sequence[str]
    workers: int
    folder: Path | None
    as_json: bool


def parse(arguments: Sequence[str]) -> Options:
    """Returns the options. Ends the program if they are wrong."""
    parser = argparse.ArgumentParser(
        prog="./test cluster", description="Check a cluster under faults."
    )
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    parser.add_argument(
        "--for", dest="load_s", type=_seconds, default="7m", help="how much load (default: 7m)"
    )
    parser.add_argument(
        "--round", dest="round_s", type=_seconds, default="2m",
        help="how much load before all promises are checked (default: 2m)",
    )  # fmt: skip
    parser.add_argument(
        "--lease", dest="lease_s", type=_seconds, default="10s",
        help="the --lease of the nodes (default: 10s)",
    )  # fmt: skip
    parser.add_argument("--seed", help="make the same choices again; the timing differs")
    parser.add_argument("--only", default="", help="only these faults, separated by commas")
    parser.add_argument("--variants", default="", help="plain, pgbouncer, patroni; all without it")
    parser.add_argument(
        "--workers", type=int, default=0, help="the --workers of each node (default: 0)"
    )
    parser.add_argument("--folder", type=Path, help="keep all records in this new folder")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    given = parser.parse_args(arguments)
    only = _names(parser, given.only, fault_names(), "fault")
    variants = _names(parser, given.variants, [each.name for each in VARIANTS], "variant")
    return Options(
        is_installing=given.install,
        load_s=given.load_s,
        round_s=given.round_s,
        lease_s=given.lease_s,
        seed=given.seed or str(random.SystemRandom().randrange(10**6)),
        only=only,
        variants=variants,
        workers=given.workers,
        folder=given.folder,
        as_json=given.json,
    )


def _seconds(text: str) -> float:
    found = parse_duration_ms(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 90s or 10m")
    return found / 1000


def _names(
    parser: argparse.ArgumentParser, given: str, known: Sequence[str], what: str
) -> list[str]:
    names = [each for each in given.split(",") if each]
    if unknown := [each for each in names if each not in known]:
        parser.error(f"no {what} is called {', '.join(unknown)}; there are {', '.join(known)}")
    return names or list(known)
