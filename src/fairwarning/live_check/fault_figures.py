"""Counts for each kind of fault what instances noticed of it."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fairwarning.live_check.checks.evidence import Evidence
from fairwarning.live_check.checks.polls import poll_failures
from fairwarning.live_check.records import Fault, Poll, Records

_WINDOW_S_MAX = 60.0  # Later, nothing that is noticed comes from the fault.


@dataclass(slots=True)
class FaultFigures:
    """What instances noticed of all faults of one name."""

    times: int = 0
    failed_polls: int = 0
    behind_polls: int = 0
    """Polls with 503 at a server that had not yet read what the instance had already seen."""
    longest_gap_s: float = 0.0
    """The longest time in which no approval was accepted."""
    slowest_answer_s: float = 0.0
    """The longest time that an approval waited for its answer, whatever that was."""
    back_s: float = 0.0
    """The longest time from the first write of the database after a fault to the next accepted
    approval.
    """

    def add(self, other: "FaultFigures") -> None:
        self.times += other.times
        self.failed_polls += other.failed_polls
        self.behind_polls += other.behind_polls
        self.longest_gap_s = max(self.longest_gap_s, other.longest_gap_s)
        self.slowest_answer_s = max(self.slowest_answer_s, other.slowest_answer_s)
        self.back_s = max(self.back_s, other.back_s)

    def to_json(self) -> dict[str, Any]:
        return {
            "times": self.times,
            "failedPolls": self.failed_polls,
            "behindPolls": self.behind_polls,
            "longestWithoutApprovalSeconds": round(self.longest_gap_s, 3),
            "slowestApprovalSeconds": round(self.slowest_answer_s, 3),
            "writableToApprovalSeconds": round(self.back_s, 3),
        }


def fault_figures(records: Records) -> dict[str, FaultFigures]:
    """Returns the figures of each kind of fault in the round."""
    found: dict[str, FaultFigures] = {}
    accepted = accepted_s(records)
    failures = poll_failures(Evidence(records))
    for fault, until_s in _windows(records):
        found.setdefault(fault.name, FaultFigures()).add(
            FaultFigures(
                times=1,
                failed_polls=_count(failures.failed, fault.began.mono_s, until_s),
                behind_polls=_count(failures.behind, fault.began.mono_s, until_s),
                longest_gap_s=_longest_gap_s(accepted, fault.began.mono_s, until_s),
                slowest_answer_s=_slowest_answer_s(records, fault.began.mono_s, until_s),
                back_s=_first_after_s(accepted, fault.writable.mono_s, until_s),
            )
        )
    return found


def accepted_s(records: Records) -> list[float]:
    """Returns when approvals were accepted, in order."""
    return sorted(
        each.answered.mono_s
        for each in records.approvals
        if each.answered is not None and each.status == 200
    )


def _windows(records: Records) -> Iterator[tuple[Fault, float]]:
    """Returns each fault, and until when it may be noticed: up to the next one or to the kill of
    all servers at the end of the load.
    """
    kills_s = [each.at.mono_s for each in records.nodes if each.change == "killed"]
    for number, fault in enumerate(records.faults):
        over_s = max(fault.ended.mono_s, fault.writable.mono_s)
        ends_s = [over_s + _WINDOW_S_MAX, *(each for each in kills_s if each > over_s)]
        ends_s += [each.began.mono_s for each in records.faults[number + 1 :]]
        yield fault, min(ends_s)


def _count(polls: Sequence[Poll], began_s: float, until_s: float) -> int:
    return sum(began_s <= each.sent.mono_s < until_s for each in polls)


def _longest_gap_s(accepted: Sequence[float], began_s: float, until_s: float) -> float:
    within = accepted[bisect_left(accepted, began_s) : bisect_left(accepted, until_s)]
    return max(later - earlier for earlier, later in pairwise([began_s, *within, until_s]))


def _slowest_answer_s(records: Records, began_s: float, until_s: float) -> float:
    return max(
        (
            # What lasts longer is noticed of the next fault, or is the end of the load.
            min(each.answered.mono_s, until_s) - each.sent.mono_s
            for each in records.approvals
            if each.answered is not None and began_s <= each.sent.mono_s < until_s
        ),
        default=0.0,
    )


def _first_after_s(accepted: Sequence[float], from_s: float, until_s: float) -> float:
    place = bisect_left(accepted, from_s)
    first_s = accepted[place] if place < len(accepted) else until_s
    return min(first_s, until_s) - from_s


def fault_lines(faults: Mapping[str, FaultFigures]) -> Iterator[str]:
    """Returns a table with a line for each kind of fault."""
    if not faults:
        return
    width = max(len(name) for name in faults)
    yield f"  {'':<{width}}  times  polls failed  behind  no approval  slowest answer  back after"
    for name, each in sorted(faults.items()):
        yield (
            f"  {name:<{width}}  {each.times:>5}  {each.failed_polls:>12}  {each.behind_polls:>6}  "
            f"{each.longest_gap_s:>9.1f} s  {each.slowest_answer_s:>12.1f} s  {each.back_s:>8.2f} s"
        )
