"""The results of a check, and the errors that end one."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"


class Result(Struct, frozen=True, kw_only=True):
    check: str
    title: str
    verdict: Verdict
    why: str = ""
    """Why it failed or was left out, or what a check that passed could not see."""
    seconds: float = 0


class Report(Struct, frozen=True, kw_only=True):
    driver: str
    package: str
    results: Sequence[Result]

    @property
    def is_good(self) -> bool:
        return all(each.verdict is not Verdict.FAILED for each in self.results)


class CheckFailed(Exception):
    """The driver broke a rule. The text says which, and what it did."""


class LeftOut(Exception):
    """The check cannot be run as things are. The text says what it needs."""
