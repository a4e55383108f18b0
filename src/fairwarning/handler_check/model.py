"""The request and the result of a case, which processes exchange as JSON, and the report."""

import re
from enum import StrEnum

from msgspec import Struct

_CHANGING = re.compile(r"[0-9A-Fa-f]{8}[0-9A-Fa-f-]*|0x[0-9a-f]+|\d+")


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_OBSERVED = "not observed"
    """The check saw too little, as when only a log can show it and the handler writes none."""


class Point(Struct, frozen=True, kw_only=True):
    """One requirement of a case: what the handler should do, and what it did."""

    should: str
    did: str
    verdict: Verdict
    evidence: tuple[str, ...] = ()
    """What the check saw: requests with their times, and lines of the handler's log."""


class Result(Struct, frozen=True, kw_only=True, rename="camel"):
    case: str
    title: str
    why: str
    """The mistake of real handlers that this case looks for."""
    happened: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    output: str = ""
    """The last lines that the handler printed."""
    crash: str = ""
    """How the handler ended by itself, with the last line that it printed. Empty if it did not."""
    took_s: float = 0.0

    @property
    def verdict(self) -> Verdict:
        found = {point.verdict for point in self.points}
        for worst in (Verdict.FAILED, Verdict.NOT_OBSERVED):
            if worst in found:
                return worst
        return Verdict.PASSED

    def failures(self) -> tuple[Point, ...]:
        return tuple(each for each in self.points if each.verdict is Verdict.FAILED)


class CaseRequest(Struct, frozen=True, kw_only=True):
    """The input of the process that runs a case."""

    case: str
    """The name of the case. If it is empty, only the first poll is checked."""
    command: tuple[str, ...]
    patience_s: float
    approves: bool
    """Whether the handler is expected to approve events."""
    in_namespace: bool
    vm: str = ""
    """The instance that the handler runs on, in the cases that it fits. Empty: as each case has
    it."""


class Report(Struct, frozen=True, kw_only=True, rename="camel"):
    command: tuple[str, ...]
    at: str
    network: str
    """How the handler reached the endpoint, as text for the report."""
    took_s: float
    results: tuple[Result, ...]

    def crashes(self) -> dict[str, tuple[str, ...]]:
        """Return the failed cases of each crash that happened in more than one."""
        found: dict[str, list[Result]] = {}
        for each in self.results:
            if each.crash and each.verdict is Verdict.FAILED:
                # Ids, addresses and line numbers of the same crash differ.
                found.setdefault(_CHANGING.sub("#", each.crash), []).append(each)
        return {
            results[0].crash: tuple(each.case for each in results)
            for results in found.values()
            if len(results) > 1
        }

    def count(self, verdict: Verdict) -> int:
        return sum(each.verdict is verdict for each in self.results)

    @property
    def is_good(self) -> bool:
        return not self.count(Verdict.FAILED)
