"""What a report shows: evidence, a crash once, and what a CI service reads."""

from itertools import groupby
from xml.etree import ElementTree as Xml

from fairwarning.handler_check.all_cases import _MODULES, CASES
from fairwarning.handler_check.cases.registry import REGISTERED
from fairwarning.handler_check.model import Point, Report, Result, Verdict
from fairwarning.handler_check.reports import MARKS, full_text, html, junit, summary


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


def test_the_text_has_a_table_then_what_is_wrong_and_the_counts() -> None:
    found = report(
        case("good", ("ask", Verdict.PASSED)),
        case("unseen", ("drain", Verdict.NOT_OBSERVED)),
        failed("bad"),
    )
    text = full_text(found)
    assert "1 passed, 1 failed, 1 not observed of 3 cases in 0 s" in text
    assert text.index("unseen: t") < text.index("bad: ")
    assert "good: t" not in text, "of what went well there is nothing to tell"
    assert f"{MARKS[Verdict.PASSED]:<4}  good" in text
    assert f"{MARKS[Verdict.PASSED]:<4}  good" not in full_text(found, with_table=False)
    assert "failed" not in summary(report(case("good", ("ask", Verdict.PASSED))))


def test_what_a_handler_printed_is_shown_where_it_failed_and_is_no_markup() -> None:
    point = Point(should="a", did="<b>", verdict=Verdict.FAILED)
    wrong = Result(case="x", title="<i>", why="w", points=(point,), output="one\n<script>")
    text = full_text(report(wrong))
    assert "        one\n        <script>" in text
    page = html(report(wrong))
    assert "<script>" not in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    unseen = Point(should="a", did="b", verdict=Verdict.NOT_OBSERVED)
    quiet = Result(case="x", title="", why="", points=(unseen,), output="printed")
    assert "printed" not in full_text(report(quiet))


def test_the_cases_come_in_the_order_of_their_chapters() -> None:
    chapters = [each.play.__module__ for each in CASES.values()]
    assert list(dict.fromkeys(chapters)) == [each.__name__ for each in _MODULES]
    assert len({name for name, _ in groupby(chapters)}) == len([*groupby(chapters)])
    assert CASES.keys() == REGISTERED.keys()
