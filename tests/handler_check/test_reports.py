"""What a report shows: evidence, and a crash once."""

from fairwarning.handler_check.model import Point, Report, Result, Verdict
from fairwarning.handler_check.reports import full_text, html


def failed(case: str, crash: str = "") -> Result:
    point = Point(
        should="go on asking",
        did="it ended",
        verdict=Verdict.FAILED,
        evidence=("after 1.5 s: its last poll, with 2020-07-01; 4 in all",),
    )
    return Result(case=case, title="", why="", points=(point,), crash=crash)


def report(*results: Result) -> Report:
    return Report(command=("x",), at="", network="", took_s=0, results=results)


def test_evidence_is_shown() -> None:
    found = report(failed("own-event"))
    for text in (full_text(found), html(found)):
        assert "after 1.5 s: its last poll" in text


def test_cases_that_fail_by_one_crash_are_grouped_under_it() -> None:
    found = report(
        failed("own-event", "it ended with exit code 1: KeyError: 'E3E70682-C209'"),
        failed("neighbour"),
        failed("completed", "it ended with exit code 1: KeyError: 'F728B4FA-4248'"),
    )
    assert [*found.crashes().values()] == [("own-event", "completed")]
    text = full_text(found)
    assert "the same crash fails 1 more: completed" in text
    assert text.count("FAIL  completed") == 1
    assert 'href="#completed"' in html(found)
