"""Makes the report plain text, with a line per case and details of those not passed."""

from collections.abc import Iterator

from fairwarning.handler_check.model import Report, Result, Verdict

MARKS = {Verdict.PASSED: "ok", Verdict.FAILED: "FAIL", Verdict.NOT_OBSERVED: "?"}
_NAME_WIDTH = 18  # The longest name of a case fits.


def line(result: Result) -> str:
    """Return one line, such as `FAIL  neighbour  a reboot of a neighbour only`."""
    return f"{MARKS[result.verdict]:<4}  {result.case:<{_NAME_WIDTH}}  {result.title}"


def details(result: Result) -> Iterator[str]:
    yield f"{MARKS[result.verdict]}  {result.case}: {result.title}"
    for each in result.happened:
        yield f"      happened  {each}"
    for point in result.points:
        if point.verdict is not Verdict.PASSED:
            yield f"      should    {point.should}"
            yield f"      did       {point.did}"
    yield f"      matters   {result.why}"
    if result.verdict is Verdict.FAILED and result.output:
        yield "      the end of what it printed:"
        yield from (f"        {each}" for each in result.output.splitlines())


def summary(report: Report) -> str:
    parts = [f"{report.count(Verdict.PASSED)} passed"]
    if failed := report.count(Verdict.FAILED):
        parts.append(f"{failed} failed")
    if unseen := report.count(Verdict.NOT_OBSERVED):
        parts.append(f"{unseen} not observed")
    return f"{', '.join(parts)} of {len(report.results)} cases in {report.took_s:.0f} s"


def full_text(report: Report, *, with_table: bool = True) -> str:
    lines = [line(each) for each in report.results] if with_table else []
    for verdict in (Verdict.NOT_OBSERVED, Verdict.FAILED):
        for each in report.results:
            if each.verdict is verdict:
                lines += ["", *details(each)]
    return "\n".join([*lines, "", summary(report)])
