"""Runs the handler check many times on a busy machine, and reports every wrong verdict.

`python -m tools.handler_check.repeat --rounds 5` plays all cases to the good handler, and to each
handler with a fault the cases that it must fail, with real processes and in a new order in each
round. Busy processes run beside them. The exit code is 1 if a verdict was wrong.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from fairwarning.handler_check.all_cases import CASES
from fairwarning.handler_check.model import CaseRequest, Result, Verdict
from fairwarning.handler_check.namespace import NoNamespaces, new_network
from fairwarning.handler_check.run import BROKEN, WorkerPool
from tests.handler_check.expected_failures import FAULTS, VARIANTS

GOOD = "none"
_IDS = re.compile(r"\b[0-9A-F]{8}\b")


@dataclass(frozen=True, slots=True)
class Play:
    """One case, played to one variant of the good handler."""

    variant: str
    case: str

    @property
    def expected(self) -> Verdict:
        return Verdict.PASSED if self.variant == GOOD else Verdict.FAILED


@dataclass(slots=True)
class Tally:
    """Counts verdicts, and keeps those that were wrong."""

    plays: int = 0
    wrong: list[str] = field(default_factory=list)
    reasons: dict[Play, Counter[str]] = field(default_factory=dict)
    """What each faulty handler was blamed for, and how often."""

    def add(self, play: Play, result: Result) -> None:
        self.plays += 1
        is_broken = any(each.did.startswith(BROKEN) for each in result.points)
        if is_broken or result.verdict is not play.expected:
            self.wrong.append(_describe(play, result))
        elif play.variant != GOOD:
            reason = "; ".join(_IDS.sub("#", each.should) for each in result.failures())
            self.reasons.setdefault(play, Counter())[reason] += 1

    def unsteady(self) -> dict[Play, Counter[str]]:
        """Return the plays that failed for different reasons in different rounds."""
        return {play: found for play, found in self.reasons.items() if len(found) > 1}


def all_plays() -> list[Play]:
    good = [Play(GOOD, case) for case in CASES]
    return good + [Play(variant, case) for variant, cases in FAULTS.items() for case in cases]


def _describe(play: Play, result: Result) -> str:
    lines = [f"{play.variant} in {play.case}: {result.verdict}, expected {play.expected}"]
    lines += [f"    happened  {each}" for each in result.happened]
    for each in result.points:
        lines.append(f"    {each.verdict}: should {each.should}; {each.did}")
        lines += [f"        {seen}" for seen in each.evidence]
    return "\n".join([*lines, *(f"    | {line}" for line in result.output.splitlines())])


class Repeater:
    """Plays rounds with real processes, and prints what was wrong at once."""

    def __init__(self, *, jobs: int, patience_s: float, seed: int) -> None:
        self._jobs = jobs
        self._patience_s = patience_s
        self._seed = seed
        self._in_namespace = _has_namespaces()
        self._pool = WorkerPool()
        self.tally = Tally()

    def run(self, rounds: int, until_s: float) -> None:
        """Play that many rounds. No round begins after `until_s` of the monotonic clock."""
        for number in range(rounds):
            if time.monotonic() > until_s:
                return
            began_s = time.monotonic()
            self._round(self._seed + number)
            _print(
                f"round {number + 1} took {time.monotonic() - began_s:.0f} s, load "
                f"{os.getloadavg()[0]:.1f}: {self.tally.plays} verdicts so far, "
                f"{len(self.tally.wrong)} wrong"
            )

    def stop(self) -> None:
        self._pool.stop()

    def _round(self, seed: int) -> None:
        plays = all_plays()
        random.Random(seed).shuffle(plays)  # noqa: S311  (an order, no secret)
        with ThreadPoolExecutor(self._jobs) as threads:
            for play, result in zip(plays, threads.map(self._play, plays), strict=True):
                wrong = len(self.tally.wrong)
                self.tally.add(play, result)
                for each in self.tally.wrong[wrong:]:
                    _print(f"WRONG {each}")

    def _play(self, play: Play) -> Result:
        return self._pool.run(
            CaseRequest(
                case=play.case,
                command=(sys.executable, str(VARIANTS), play.variant),
                patience_s=self._patience_s,
                approves=True,
                in_namespace=self._in_namespace,
            )
        )


def _has_namespaces() -> bool:
    try:
        new_network()
    except NoNamespaces:
        return False
    return True


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def _print(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is played")
    parser.add_argument("--minutes", type=float, default=600, help="no round begins after this")
    parser.add_argument("--busy", type=int, default=4, help="how many busy processes run beside")
    parser.add_argument("--jobs", type=int, default=4, help="how many cases run at once")
    parser.add_argument("--patience", type=float, default=10.0, help="seconds, as check's own")
    parser.add_argument("--seed", type=int, default=1, help="decides the order of the plays")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began_s = time.monotonic()
    repeater = Repeater(jobs=given.jobs, patience_s=given.patience, seed=given.seed)
    try:
        with busy_processes(given.busy):
            repeater.run(given.rounds, began_s + 60 * given.minutes)
    finally:
        repeater.stop()
    tally = repeater.tally
    for play, reasons in tally.unsteady().items():
        _print(f"{play.variant} in {play.case} failed for more than one reason:")
        for reason, count in reasons.most_common():
            _print(f"    {count} times: {reason}")
    _print(
        f"{tally.plays} verdicts in {time.monotonic() - began_s:.0f} s with {given.busy} busy "
        f"processes beside: {len(tally.wrong)} wrong"
    )
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
