"""Cases run side by side, and the report has them in the order in which they were asked for."""

import threading

import pytest

from fairwarning.handler_check.model import CaseRequest, Point, Result, Verdict
from fairwarning.handler_check.run import WorkerPool
from tests.support.patience import HANG_S


def request(case: str) -> CaseRequest:
    return CaseRequest(
        case=case, command=("true",), patience_s=1, approves=True, in_namespace=False
    )


def result(case: str, *verdicts: Verdict) -> Result:
    points = tuple(Point(should="x", did="y", verdict=each) for each in verdicts)
    return Result(case=case, title="", why="", points=points)


class Pool(WorkerPool):
    """Its first case ends last."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()

    def run(self, request: CaseRequest) -> Result:
        if request.case == "first":
            assert self.ended.wait(HANG_S)
        else:
            self.ended.set()
        return result(request.case)


def test_results_come_when_they_are_there_and_are_reported_in_order() -> None:
    come: list[str] = []
    found = Pool().run_all(
        [request("first"), request("second")], 2, lambda each: come.append(each.case)
    )
    assert [each.case for each in found] == ["first", "second"]
    assert sorted(come) == ["first", "second"]


class BrokenPool(WorkerPool):
    def run(self, request: CaseRequest) -> Result:
        raise KeyboardInterrupt


def test_an_interrupted_check_starts_no_more_workers() -> None:
    pool = BrokenPool()
    with pytest.raises(KeyboardInterrupt):
        pool.run_all([request("first")], 1, lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        WorkerPool.run(pool, request("second"))


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        ([], Verdict.PASSED),
        ([Verdict.PASSED, Verdict.NOT_OBSERVED], Verdict.NOT_OBSERVED),
        ([Verdict.NOT_OBSERVED, Verdict.FAILED, Verdict.PASSED], Verdict.FAILED),
    ],
)
def test_the_worst_point_is_the_verdict_of_a_case(verdicts: list[Verdict], worst: Verdict) -> None:
    assert result("x", *verdicts).verdict is worst
