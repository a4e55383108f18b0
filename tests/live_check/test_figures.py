"""The figures of a run say what happened to each request."""

from msgspec.structs import replace

from fairwarning.live_check.checks.evidence import Finding
from fairwarning.live_check.figures import _FINDINGS_SHOWN, Figures, finding_lines
from fairwarning.live_check.records import Records
from tests.live_check.round_builder import good_round


def test_a_request_is_done_or_refused_or_nobody_knows() -> None:
    request = good_round().records.requests[0]
    statuses = (200, 202, 400, 409, 500, 503, None)
    figures = Figures()
    figures.add(Records([replace(request, status=each) for each in statuses]), [], 1.0)
    assert figures.to_json()["operations"] == {
        request.what: {"done": 2, "refused": 2, "unknown": 3}
    }


def test_findings_are_by_promise_and_no_endless_list() -> None:
    found = [Finding("b", f"e{number}", "late") for number in range(_FINDINGS_SHOWN + 2)]
    lines = list(finding_lines([*found, Finding("a", "x", "lost")]))
    assert lines[:2] == ["BROKEN  a, 1 time", "  x  lost"]
    assert lines[2] == f"BROKEN  b, {_FINDINGS_SHOWN + 2} times"
    assert lines[3:-1] == [f"  e{number}  late" for number in range(_FINDINGS_SHOWN)]
    assert lines[-1] == "  and 2 more"
    assert not any("more" in line for line in finding_lines(found[:_FINDINGS_SHOWN]))
