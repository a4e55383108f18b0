"""What a report shows: evidence, a crash once, and what a CI service reads."""

from xml.etree import ElementTree as Xml

from fairwarning.handler_check.model import Point, Report, Result, Verdict
from fairwarning.handler_check.reports import full_text, html, junit


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


def case(name: str, *points: tuple[str, Verdict]) -> Result:
    found = tuple(Point(should=should, did="it\x00 did", verdict=each) for should, each in points)
    return Result(case=name, title="t", why="w", points=found, took_s=1.5)


def test_the_message_is_the_first_point_that_the_verdict_is_about() -> None:
    results = (
        case("good", ("ask", Verdict.PASSED)),
        case(
            "bad", ("ask", Verdict.PASSED), ("see", Verdict.NOT_OBSERVED), ("undo", Verdict.FAILED)
        ),
        case("unseen", ("ask", Verdict.PASSED), ("drain", Verdict.NOT_OBSERVED)),
    )
    report = Report(
        command=("x",), at="2026-01-01T00:00:00Z", network="", took_s=3, results=results
    )
    suite = Xml.fromstring(junit(report))[0]
    counts = [suite.get(name) for name in ("tests", "failures", "skipped", "errors", "time")]
    assert counts == ["3", "1", "1", "0", "3.00"]
    told = {each.get("name"): [(tag.tag, tag.get("message")) for tag in each] for each in suite}
    assert told == {
        "good": [],
        "bad": [("failure", "it should undo; it\ufffd did")],
        "unseen": [("skipped", "it should drain; it\ufffd did")],
    }
