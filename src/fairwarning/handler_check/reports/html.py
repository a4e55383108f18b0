"""Makes the report a single HTML page. It is light or dark as the browser is set."""

import shlex
from collections.abc import Iterator
from html import escape

from fairwarning.handler_check.model import Point, Report, Result, Verdict
from fairwarning.handler_check.reports.text import summary

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
.body { padding: 0 0 1rem 7.75rem }
.passed { color: var(--good) } .failed { color: var(--bad) } .not-observed { color: var(--unseen) }
th, td { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0 }
th { color: var(--faint); font-weight: normal }
@media (max-width: 40rem) { .body { padding-left: 0 } summary { flex-wrap: wrap } }
"""


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
            *(_case(each) for each in report.results),
            "</body>\n</html>\n",
        ]
    )


def _case(result: Result) -> str:
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
    yield f"</table>\n<p>Why it matters: {escape(result.why)}.</p>"
    if result.output:
        yield f"<p>The end of what it printed:</p><pre>{escape(result.output)}</pre>"


def _row(point: Point) -> str:
    return (
        f"<tr><td>{escape(point.should)}</td><td>{escape(point.did)}</td>"
        f'<td class="{_class(point.verdict)}">{point.verdict}</td></tr>'
    )


def _class(verdict: Verdict) -> str:
    return verdict.replace(" ", "-")
