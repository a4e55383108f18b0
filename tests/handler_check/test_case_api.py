"""What a case says of a handler: what it did, what it did not do, and what nobody could see."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.fleet import instances
from fairwarning.handler_check.model import Point, Verdict

EVENT: Any = SimpleNamespace(id="11112222-3333")


class Seen:
    """What was seen of a handler, without a handler: nothing is waited for."""

    def __init__(
        self,
        *,
        approvals: int = 0,
        drains: int = 0,
        undos: int = 0,
        is_alive: bool = True,
        polls_on: bool = True,
        writes_log: bool = True,
    ) -> None:
        self._approvals = approvals
        self._polls_on = polls_on
        self.is_alive = is_alive
        self.ending = "ended with exit code 3"
        counts = Counter(drain=drains, undo=undos)
        self.log = SimpleNamespace(count=lambda word, _: counts[word], is_written=writes_log)

    def __getattr__(self, name: str) -> Any:
        """Evidence and the like is not part of a verdict."""
        return lambda *_, **__: ()

    def approvals(self, _: str, **__: int) -> int:
        return self._approvals

    def has_acted_on(self, event_id: str) -> bool:
        return bool(self._approvals or self.log.count("drain", event_id))

    def polls(self, **_: int) -> int:
        return 7

    def wait(self, condition: Callable[[], object], *, within_s: float | None = None) -> bool:
        return bool(condition())

    def wait_polls(self, _: int) -> bool:
        return self._polls_on and self.is_alive


def told(
    ask: Callable[[CaseRun], None], *, approves: bool = True, **seen: Any
) -> tuple[Verdict, str]:
    nobody: Any = None
    observed: Any = Seen(**seen)
    run = CaseRun(nobody, instances("web-0"), observed, lambda: None, approves=approves)
    ask(run)
    (point,) = run.points
    assert isinstance(point, Point)
    return point.verdict, point.did


@pytest.mark.parametrize(
    ("seen", "verdict", "did"),
    [
        ({}, Verdict.PASSED, "it left it alone"),
        ({"approvals": 1}, Verdict.FAILED, "it approved it"),
        ({"drains": 1}, Verdict.FAILED, "it drained for it"),
        ({"is_alive": False}, Verdict.FAILED, "it ended with exit code 3"),
        ({"polls_on": False}, Verdict.NOT_OBSERVED, "it asked too seldom"),
    ],
)
def test_who_should_leave_an_event_alone(seen: dict[str, Any], verdict: Verdict, did: str) -> None:
    found, text = told(lambda run: run.must_ignore(EVENT, "it is another's"), **seen)
    assert found is verdict
    assert text.startswith(did)


@pytest.mark.parametrize(
    ("seen", "verdict", "did"),
    [
        ({"undos": 1}, Verdict.PASSED, "it wrote `undo`"),
        ({"undos": 2}, Verdict.FAILED, "it wrote `undo` 2 times"),
        ({}, Verdict.FAILED, "it wrote no `undo` into its log"),
        ({"is_alive": False}, Verdict.FAILED, "it ended with exit code 3"),
        ({"writes_log": False}, Verdict.NOT_OBSERVED, "the handler wrote nothing"),
    ],
)
def test_who_should_undo_once(seen: dict[str, Any], verdict: Verdict, did: str) -> None:
    found, text = told(lambda run: run.must_undo(EVENT), **seen)
    assert found is verdict
    assert text.startswith(did)


@pytest.mark.parametrize(
    ("seen", "verdict", "did"),
    [
        ({"approvals": 2}, Verdict.PASSED, "it approved"),
        ({}, Verdict.FAILED, "it asked 7 times and did not approve"),
        ({"drains": 1}, Verdict.FAILED, "it drained and did not approve"),
        ({"is_alive": False}, Verdict.FAILED, "it ended with exit code 3"),
        ({"approves": False, "drains": 1}, Verdict.PASSED, "it wrote `drain`"),
        ({"approves": False, "approvals": 1}, Verdict.FAILED, "it wrote no `drain`"),
    ],
)
def test_who_should_handle_an_event(seen: dict[str, Any], verdict: Verdict, did: str) -> None:
    found, text = told(lambda run: run.must_handle(EVENT), **seen)
    assert found is verdict
    assert text.startswith(did)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        ({"approvals": 1}, Verdict.PASSED),
        ({"drains": 1}, Verdict.PASSED),
        ({}, Verdict.FAILED),
        ({"writes_log": False}, Verdict.NOT_OBSERVED),
    ],
)
def test_who_shares_an_event_approves_it_or_leaves_that_to_another(
    seen: dict[str, Any], verdict: Verdict
) -> None:
    assert told(lambda run: run.must_notice(EVENT), **seen)[0] is verdict


@pytest.mark.parametrize(
    ("seen", "verdict", "did"),
    [
        ({}, Verdict.PASSED, "it did"),
        ({"polls_on": False}, Verdict.FAILED, "it runs and does not ask any more"),
        ({"is_alive": False}, Verdict.FAILED, "it ended with exit code 3"),
    ],
)
def test_who_should_go_on_asking(seen: dict[str, Any], verdict: Verdict, did: str) -> None:
    assert told(lambda run: run.must_keep_polling(), **seen) == (verdict, did)
