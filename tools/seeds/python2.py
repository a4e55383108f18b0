"""Runs a Python 2 sample under Python 3 and leaves its file alone: `python2.py SAMPLE TRACE`.

It supplies a module `urllib2`, which is `urllib.request` that also writes each answer to TRACE,
and reads print statements as calls. Nothing else of Python 2 is imitated: no
`print >>file`, no comma at the end of a print.
"""

import io
import json
import sys
import tokenize
import types
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BEFORE_STATEMENT = frozenset(
    {tokenize.ENCODING, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}
)
_NOT_CODE = frozenset({tokenize.COMMENT, tokenize.NL})


def with_print_calls(source: str) -> str:
    """Returns the source with each print statement as a call."""
    lines = source.splitlines(keepends=True)
    for (row, column), (last_row, last_column) in reversed(list(_prints(source))):
        last = lines[last_row - 1]
        lines[last_row - 1] = f"{last[:last_column]}){last[last_column:]}"
        first = lines[row - 1]
        lines[row - 1] = f"{first[:column]}({first[column:]}"
    return "".join(lines)


def _prints(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Finds where the word `print` ends, and where its statement ends."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    code = [token for token in tokens if token.type not in _NOT_CODE]
    for number, token in enumerate(code):
        starts = number == 0 or code[number - 1].type in _BEFORE_STATEMENT
        if starts and token.string == "print" and code[number + 1].string not in {"(", "="}:
            end = next(n for n in range(number, len(code)) if code[n].type == tokenize.NEWLINE)
            yield token.end, code[end - 1].end


def urllib2(trace: Path) -> types.ModuleType:
    def urlopen(request: Any, *args: Any, **kwargs: Any) -> Any:
        answer = urllib.request.urlopen(request, *args, **kwargs)  # noqa: S310
        body = answer.read()
        with trace.open("a") as notes:
            notes.write(json.dumps([answer.status, body.decode()]) + "\n")
        answer.fp = io.BytesIO(body)
        answer.length = len(body)
        return answer

    module = types.ModuleType("urllib2")
    module.__dict__.update(
        Request=urllib.request.Request,
        urlopen=urlopen,
        HTTPError=urllib.error.HTTPError,
        URLError=urllib.error.URLError,
    )
    return module


def main() -> None:
    sample, trace = sys.argv[1:]
    source = Path(sample).read_text(encoding="utf-8")
    sys.modules["urllib2"] = urllib2(Path(trace))
    sys.argv = [sample]
    code = compile(with_print_calls(source), sample, "exec")
    exec(code, {"__name__": "__main__", "__file__": sample})  # noqa: S102


if __name__ == "__main__":
    main()
