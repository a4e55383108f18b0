"""What a story found out, as values that go between processes as JSON."""

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_OBSERVED = "not observed"
    """Only the handler's log could show it, and the handler wrote none."""


class Point(Struct, frozen=True, kw_only=True):
    """One thing that the handler should have done, and what it did."""

    should: str
    did: str
    verdict: Verdict


class Result(Struct, frozen=True, kw_only=True, rename="camel"):
    story: str
    title: str
    why: str
    """Which fault of real handlers it looks for."""
    happened: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    output: str = ""
    """The end of what the handler printed."""
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


class Order(Struct, frozen=True, kw_only=True):
    """What a story's process is told."""

    story: str
    """Empty: only see whether the handler asks at all."""
    command: tuple[str, ...]
    patience_s: float
    approves: bool
    """Whether the handler is one that approves."""
    in_namespace: bool


class Report(Struct, frozen=True, kw_only=True, rename="camel"):
    command: tuple[str, ...]
    at: str
    network: str
    """How the handler found the endpoint."""
    took_s: float
    results: tuple[Result, ...]

    def count(self, verdict: Verdict) -> int:
        return sum(each.verdict is verdict for each in self.results)

    @property
    def is_good(self) -> bool:
        return not self.count(Verdict.FAILED)
