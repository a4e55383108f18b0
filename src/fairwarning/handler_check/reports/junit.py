"""Makes the report JUnit XML for CI services. A case not observed counts as `skipped`."""

import re
from xml.etree import ElementTree as Xml

from fairwarning.handler_check.model import Report, Result, Verdict
from fairwarning.handler_check.reports.text import details

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> bytes:
    suite = Xml.Element(
        "testsuite",
        name="fairwarning check",
        tests=str(len(report.results)),
        failures=str(report.count(Verdict.FAILED)),
        skipped=str(report.count(Verdict.NOT_OBSERVED)),
        errors="0",
        time=f"{report.took_s:.2f}",
        timestamp=report.at.removesuffix("Z"),
    )
    for result in report.results:
        _case(suite, result)
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    found: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return found


def _case(suite: Xml.Element, result: Result) -> None:
    case = Xml.SubElement(
        suite,
        "testcase",
        classname="fairwarning.handler_check",
        name=result.case,
        time=f"{result.took_s:.2f}",
    )
    if result.verdict is Verdict.PASSED:
        return
    first = next(each for each in result.points if each.verdict is result.verdict)
    message = _clean(f"it should {first.should}; {first.did}")
    tag = "failure" if result.verdict is Verdict.FAILED else "skipped"
    found = Xml.SubElement(case, tag, message=message)
    found.text = _clean("\n".join(details(result)))


def _clean(text: str) -> str:
    """Replace the characters that XML does not allow. A handler may print any character."""
    return _NOT_IN_XML.sub("\ufffd", text)
