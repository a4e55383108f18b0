"""What a CI service shows of a check."""

from xml.etree import ElementTree as Xml

from fairwarning.handler_check.model import Point, Report, Result, Verdict
from fairwarning.handler_check.reports import junit


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
