"""The repeated handler check notices a wrong verdict, and one that is right for another reason."""

import pytest

from fairwarning.handler_check.all_cases import CASES
from fairwarning.handler_check.model import Point, Result, Verdict
from fairwarning.handler_check.run import BROKEN
from tools.handler_check.repeat import GOOD, Play, Tally, all_plays


def result(verdict: Verdict, should: str = "approve event 602D9444", did: str = "it did") -> Result:
    point = Point(should=should, did=did, verdict=verdict)
    return Result(case="own-event", title="", why="", points=(point,))


@pytest.mark.parametrize(
    ("variant", "found", "is_wrong"),
    [
        (GOOD, result(Verdict.PASSED), False),
        (GOOD, result(Verdict.FAILED), True),
        (GOOD, result(Verdict.NOT_OBSERVED), True),
        ("never_approves", result(Verdict.FAILED), False),
        ("never_approves", result(Verdict.PASSED), True),
        ("never_approves", result(Verdict.NOT_OBSERVED), True),
        ("never_approves", result(Verdict.FAILED, did=f"{BROKEN}: no memory"), True),
    ],
)
def test_a_wrong_verdict_is_kept(variant: str, found: Result, is_wrong: bool) -> None:
    tally = Tally()
    tally.add(Play(variant, "own-event"), found)
    assert tally.plays == 1
    assert bool(tally.wrong) == is_wrong


def test_reasons_that_differ_in_more_than_ids_are_told() -> None:
    tally, play = Tally(), Play("never_approves", "own-event")
    tally.add(play, result(Verdict.FAILED, "approve event 602D9444"))
    tally.add(play, result(Verdict.FAILED, "approve event 9A206BE5"))
    assert not tally.unsteady()
    tally.add(play, result(Verdict.FAILED, "ask for scheduled events"))
    assert len(tally.unsteady()[play]) == 2


def test_a_round_plays_every_case_to_the_good_handler_and_to_a_faulty_one() -> None:
    plays = all_plays()
    assert {each.case for each in plays if each.variant == GOOD} == {*CASES}
    assert {each.case for each in plays if each.variant != GOOD} == {*CASES}
