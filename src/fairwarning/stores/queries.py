"""The statements of a dialect, by name, out of `sql/<dialect>/queries.sql`.

A line `-- name: <name>` begins a statement; comment lines below it say why it is as it is.
"""

import re
from collections.abc import Mapping
from importlib.resources import files

_HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


def load_queries(dialect: str) -> Mapping[str, str]:
    path = files("fairwarning.stores").joinpath("sql", dialect, "queries.sql")
    _, *parts = _HEADER.split(path.read_text(encoding="utf-8"))
    names, bodies = parts[::2], parts[1::2]
    assert len(set(names)) == len(names), f"a statement of {dialect} is named twice"
    return {
        name: _COMMENT.sub("", body).strip().removesuffix(";")
        for name, body in zip(names, bodies, strict=True)
    }
