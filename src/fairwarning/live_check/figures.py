"""Counts what happened in a run, and prints it for people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairwarning.common.escape import counted
from fairwarning.live_check.checks import Finding
from fairwarning.live_check.fault_figures import FaultFigures, fault_figures, fault_lines
from fairwarning.live_check.records import Records

_FINDINGS_SHOWN = 5  # One bug mostly causes many findings.


@dataclass(slots=True)
class Figures:
    rounds: int = 0
    load_s: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    operations: dict[str, Counter[str]] = field(default_factory=dict)
    """How often each kind of request was carried out, refused or not answered."""
    faults: dict[str, FaultFigures] = field(default_factory=dict)
    """What was noticed of each kind of fault."""
    broken: Counter[str] = field(default_factory=Counter)

    def add(self, records: Records, findings: Sequence[Finding], load_s: float) -> None:
        self.rounds += 1
        self.load_s += load_s
        self.counts.update(_counted(records))
        for request in records.requests:
            outcomes = self.operations.setdefault(request.what, Counter())
            outcomes[_outcome(request.status)] += 1
        for name, found in fault_figures(records).items():
            self.faults.setdefault(name, FaultFigures()).add(found)
        self.broken.update(finding.promise for finding in findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "rounds": self.rounds,
            "loadSeconds": round(self.load_s, 1),
            **dict(sorted(self.counts.items())),
            "operations": {what: dict(found) for what, found in sorted(self.operations.items())},
            "faults": {name: each.to_json() for name, each in sorted(self.faults.items())},
            "broken": dict(sorted(self.broken.items())),
        }

    def lines(self) -> Iterator[str]:
        count = self.counts
        yield f"{self.load_s:.0f} s of load in {counted(self.rounds, 'round')}"
        yield (
            f"  servers     {count['kills']} killed, {count['stops']} stopped, "
            f"{count['pauses']} paused"
        )
        yield (
            f"  polls       {count['polls']}, of which {count['documents']} got a document; "
            f"{count['approvals']} approvals"
        )
        yield (
            f"  events      {count['scheduled']}: {count['completed']} completed, "
            f"{count['cancelled']} cancelled, {count['failed']} failed"
        )
        yield (
            f"  driver      {count['orders']} orders, {count['impacts']} impacts begun, "
            f"{count['driverFailures']} failed, {count['interrupted']} interrupted, "
            f"{count['finds']} times asked what became of one"
        )
        width = max((len(what) for what in self.operations), default=0)
        for what, found in sorted(self.operations.items()):
            told = f"{found['done']} done, {found['refused']} refused, {found['unknown']} unknown"
            yield f"  {what:<{width}}  {told}"
        yield from fault_lines(self.faults)


def _counted(records: Records) -> dict[str, int]:
    driver = Counter(call.what for call in records.driver)
    ends = Counter(call.outcome for call in records.driver if call.what == "end")
    kinds = Counter(entry.kind for entry in records.history)
    nodes = Counter(change.change for change in records.nodes)
    return {
        "polls": len(records.polls),
        "documents": sum(poll.document is not None for poll in records.polls),
        "approvals": len(records.approvals),
        "scheduled": kinds["Scheduled"],
        "completed": kinds["Completed"],
        "cancelled": kinds["Cancelled"],
        "failed": kinds["Failed"],
        "orders": driver["do"],
        "finds": driver["find"],
        "impacts": driver["begin"],
        "driverFailures": ends["failed"],
        "interrupted": ends["interrupted"],
        "kills": nodes["killed"],
        "stops": nodes["stopped"],
        "pauses": nodes["paused"],
        "historyEntries": len(records.history),
    }


def _outcome(status: int | None) -> str:
    if status is None or status >= 500:
        return "unknown"
    return "done" if status < 300 else "refused"


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Returns lines with the first findings of each promise, and how many more there are."""
    by_promise: dict[str, list[Finding]] = {}
    for finding in findings:
        by_promise.setdefault(finding.promise, []).append(finding)
    for promise, found in sorted(by_promise.items()):
        yield f"BROKEN  {promise}, {counted(len(found), 'time')}"
        for finding in found[:_FINDINGS_SHOWN]:
            yield f"  {finding.about}  {finding.text}"
        if len(found) > _FINDINGS_SHOWN:
            yield f"  and {len(found) - _FINDINGS_SHOWN} more"
