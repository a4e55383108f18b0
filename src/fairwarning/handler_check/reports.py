"""Writes the report of a check: as text, as a single HTML page, and as JUnit XML for CI services.

In JUnit XML, a case that was not observed counts as `skipped`.
"""

import re
import shlex
from collections.abc import Iterator
from html import escape
from textwrap import wrap
from xml.etree import ElementTree as Xml

from fairwarning.handler_check.grade import grade
from fairwarning.handler_check.model import Point, Report, Result, Verdict

MARKS = {Verdict.PASSED: "ok", Verdict.FAILED: "FAIL", Verdict.NOT_OBSERVED: "?"}
_WIDTH_MAX = 100  # Wider lines are hard to read, however wide the terminal is.
_NAME_WIDTH = 19  # The longest name of a case fits.
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #59636e;
  --line: #d1d9e0; --good: #1a7f37; --bad: #c62828; --unseen: #8a5a00; --box: #f6f8fa }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #9198a1;
  --line: #3d444d; --good: #3fb950; --bad: #ff7b72; --unseen: #d8a327; --box: #161b22 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 14px/1.45 ui-monospace, monospace }
pre { background: var(--box); padding: .75rem; overflow-x: auto; border-radius: 6px }
details { border-top: 1px solid var(--line) }
details:last-of-type { border-bottom: 1px solid var(--line) }
summary { padding: .5rem 0; cursor: pointer; display: flex; gap: .75rem; align-items: baseline }
summary .verdict { flex: 0 0 7rem; font-weight: 600 }
summary .title { color: var(--faint) }
.seen { margin: .25rem 0; padding-left: 1rem; color: var(--faint); font-size: .875rem }
.body { padding: 0 0 1rem 7.75rem }
.passed { color: var(--good) } .failed { color: var(--bad) } .not-observed { color: var(--unseen) }
th, td { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0 }
th { color: var(--faint); font-weight: normal }
@media (max-width: 40rem) { .body { padding-left: 0 } summary { flex-wrap: wrap } }
"""
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def line(result: Result) -> str:
    """Return one line, such as `FAIL  neighbour  a reboot of a neighbour only`."""
    return listed(f"{MARKS[result.verdict]:<4}  {result.case:<{_NAME_WIDTH}}  ", result.title)


def listed(label: str, text: str) -> str:
    """Return the text after its label, in lines that are broken below its first word."""
    width = _WIDTH_MAX - len(label)
    lines = wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    return label + f"\n{' ' * len(label)}".join(lines)


def details(result: Result) -> Iterator[str]:
    yield listed(f"{MARKS[result.verdict]}  {result.case}: ", result.title)
    for each in result.happened:
        yield listed("      happened  ", each)
    for point in result.points:
        if point.verdict is not Verdict.PASSED:
            yield listed("      should    ", point.should)
            yield listed("      did       ", point.did)
            yield from (listed("      seen      ", each) for each in point.evidence)
    yield listed("      matters   ", result.why)
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
    """Return the whole report. Of the cases that fail by the same crash, only one is detailed."""
    lines = [line(each) for each in report.results] if with_table else []
    crashes = report.crashes()
    repeated = {case for cases in crashes.values() for case in cases[1:]}
    for verdict in (Verdict.NOT_OBSERVED, Verdict.FAILED):
        for each in report.results:
            if each.verdict is verdict and each.case not in repeated:
                lines += ["", *details(each)]
                others = next(
                    (cases[1:] for cases in crashes.values() if each.case == cases[0]), ()
                )
                if others:
                    lines += [
                        listed(
                            f"      the same crash fails {len(others)} more: ", ", ".join(others)
                        )
                    ]
    return "\n".join([*lines, "", summary(report), grade(report).text])


def html(report: Report) -> str:
    command = escape(shlex.join(report.command))
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Handler check: {command}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>Handler check</h1>\n<p><code>{command}</code></p>",
            f"<p><strong>{escape(summary(report))}</strong>, on {escape(report.at)}, "
            f"{escape(report.network)}</p>",
            f"<p>{escape(grade(report).text)}</p>",
            *_crashes_html(report),
            *(_case_html(each) for each in report.results),
            "</body>\n</html>\n",
        ]
    )


def _crashes_html(report: Report) -> Iterator[str]:
    for crash, cases in report.crashes().items():
        links = ", ".join(f'<a href="#{escape(each)}">{escape(each)}</a>' for each in cases)
        count = f"{len(cases)} cases fail by the same crash"
        yield f"<p>{count}, <code>{escape(crash)}</code>: {links}</p>"


def _case_html(result: Result) -> str:
    kind = _class(result.verdict)
    is_open = " open" if result.verdict is Verdict.FAILED else ""
    return "\n".join(
        [
            f'<details id="{escape(result.case)}"{is_open}>',
            f'<summary><span class="verdict {kind}">{result.verdict}</span>'
            f"<span><strong>{escape(result.case)}</strong> "
            f'<span class="title">{escape(result.title)}</span></span></summary>',
            '<div class="body">',
            *_body(result),
            "</div></details>",
        ]
    )


def _body(result: Result) -> Iterator[str]:
    if result.happened:
        yield "<p>What happened:</p><ol>"
        yield from (f"<li>{escape(each)}</li>" for each in result.happened)
        yield "</ol>"
    yield '<table><tr><th scope="col">It should</th><th scope="col">It did</th><th></th></tr>'
    yield from (_row(point) for point in result.points)
    if result.crash:
        yield f"<tr><td></td><td>{escape(result.crash)}</td><td></td></tr>"
    yield f"</table>\n<p>Why it matters: {escape(result.why)}.</p>"
    if result.output:
        yield f"<p>The end of what it printed:</p><pre>{escape(result.output)}</pre>"


def _row(point: Point) -> str:
    return (
        f"<tr><td>{escape(point.should)}</td><td>{escape(point.did)}{_seen(point)}</td>"
        f'<td class="{_class(point.verdict)}">{point.verdict}</td></tr>'
    )


def _seen(point: Point) -> str:
    lines = "".join(f"<li>{escape(each)}</li>" for each in point.evidence)
    return f'<ul class="seen">{lines}</ul>' if lines else ""


def _class(verdict: Verdict) -> str:
    return verdict.replace(" ", "-")


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
        _add_case(suite, result)
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    found: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return found


def _add_case(suite: Xml.Element, result: Result) -> None:
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
