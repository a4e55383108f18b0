"""The threat model names tests that are there, and states the limits that the code has."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LIMIT = re.compile(r"`([\w.]+)\.([A-Z][A-Z_]+)`")
AMOUNT = re.compile(r"([0-9,]+)(?: (KiB|MiB|GiB|s|h))?")
UNITS = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "s": 1, "h": 3600}


def test_every_named_test_is_there() -> None:
    named = TEST.findall(PAGE)
    assert len(named) == PAGE.count("::test_") > 0, "tests are named in another way now"
    assert not [f"{path}::{name}" for path, name in named if name not in _tests(ROOT / path)]


def test_every_claim_names_its_test() -> None:
    claims = [row for header, row in _rows() if header[-1] == "Shown by"]
    assert claims, "claims are written in another way now"
    assert not [row for row in claims if not TEST.search(row[-1])]


def test_every_limit_is_as_stated() -> None:
    stated = [row for header, row in _rows() if "Name in the code" in header]
    assert stated, "limits are written in another way now"
    wrong = [f"{row[:3]} is {_value(row[2])}" for row in stated if _value(row[2]) != _amount(row)]
    assert not wrong


def test_every_listener_has_its_limits() -> None:
    modules = {found[1] for _, row in _rows() for cell in row for found in LIMIT.finditer(cell)}
    parts = {".".join(each.split(".")[:2]) for each in modules}
    assert parts >= {"metadata.limits", "control.connections", "azure_api.app", "portal.sessions"}


@cache
def _tests(path: Path) -> frozenset[str]:
    if not path.exists():
        return frozenset()
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = (each for each in ast.parse(path.read_text()).body if isinstance(each, functions))
    return frozenset(each.name for each in found if each.name.startswith("test_"))


def _rows() -> Iterator[tuple[list[str], list[str]]]:
    """The rows of all tables, each with the header of its table."""
    header: list[str] = []
    for line in PAGE.splitlines():
        if not line.startswith("|"):
            header = []
        elif not header:
            header = _cells(line)
        elif not line.startswith("|---"):
            yield header, _cells(line)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _amount(row: list[str]) -> int:
    """What the page states, in the unit of the constant that it names."""
    found = AMOUNT.fullmatch(row[1])
    assert found is not None, f"{row[1]!r} is no number with a known unit"
    number = int(found[1].replace(",", "")) * UNITS.get(found[2] or "", 1)
    return number * 1000 if row[2].endswith("_MS`") else number


def _value(cell: str) -> object:
    found = LIMIT.fullmatch(cell)
    assert found is not None, f"{cell} names no constant"
    return getattr(import_module(f"fairwarning.{found[1]}"), found[2])
