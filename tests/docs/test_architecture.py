"""ARCHITECTURE.md names files that exist and symbols that they define."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/fairwarning"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
ROWS_MIN = 40
PLACE = re.compile(r"`([\w./-]+)` `(\w+)`")
PATH = re.compile(r"`([\w/]+\.py)`")


def _rows() -> list[tuple[str, str]]:
    """The rows "to change X, open Y" below their heading."""
    rows = re.findall(
        r"^\| (.+?) \| (.+) \|$", PAGE.partition("## To change X, open Y")[2], re.MULTILINE
    )
    return [(x, y) for x, y in rows if x != "to change"]


def test_there_are_enough_rows() -> None:
    assert len(_rows()) >= ROWS_MIN
    assert len({x for x, _ in _rows()}) == len(_rows()), "a row is there twice"


@pytest.mark.parametrize("row", _rows(), ids=lambda row: str(row[0]))
def test_each_row_names_a_file_and_a_symbol_that_it_defines(row: tuple[str, str]) -> None:
    places = PLACE.findall(row[1])
    assert places, f"{row[1]} names no `file` `symbol`"
    for file, symbol in places:
        path = _find(file)
        assert path is not None, f"there is no {file}"
        assert symbol in _defined(path), f"{file} defines no {symbol}"


def test_the_path_of_an_event_names_files_that_exist() -> None:
    section = PAGE.partition("## The path of one event")[2].partition("\n## ")[0]
    files = PATH.findall(section)
    assert files
    assert not [each for each in files if _find(each) is None]


def test_every_package_has_its_row() -> None:
    table = PAGE.partition("## The packages")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)
    assert sorted(named) == sorted(each.parent.name for each in SOURCE.glob("*/__init__.py"))


def test_each_package_says_where_to_start_reading() -> None:
    table = PAGE.partition("## The packages")[2].partition("\n## ")[0]
    for package, cell in re.findall(r"^\| `([\w/]+)/` \| .+ \| (.+) \|$", table, re.MULTILINE):
        for each in re.findall(r"`([\w/.]+(?:\.py|/))`", cell):
            places = (SOURCE / package / each, SOURCE / each)
            assert any(place.exists() for place in places), f"{package} has no {each}"


def _find(file: str) -> Path | None:
    return next((each for each in (SOURCE / file, ROOT / file) if each.is_file()), None)


def _defined(path: Path) -> set[str]:
    """The functions, classes and constants at the top level of a module."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign():
                names.update(each.id for each in node.targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return names
