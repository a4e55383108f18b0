"""The files that `check` writes."""

import json
from pathlib import Path

import pytest

from fairwarning.cli import check
from fairwarning.handler_check.model import Point, Report, Result, Verdict

POINT = Point(should="ask", did="it did", verdict=Verdict.PASSED)
RESULT = Result(case="own-event", title="t", why="w", points=(POINT,))
REPORT = Report(command=("x",), at="2026-01-01T00:00:00Z", network="", took_s=0, results=(RESULT,))


@pytest.mark.parametrize("name", ["badge.svg", "badge.SVG"])
def test_a_badge_is_an_image_if_its_name_says_so(tmp_path: Path, name: str) -> None:
    check._write(REPORT, None, None, tmp_path / name)
    assert (tmp_path / name).read_text().startswith("<svg")


def test_any_other_badge_is_json_and_only_what_is_asked_for_is_written(tmp_path: Path) -> None:
    check._write(REPORT, tmp_path / "a.xml", tmp_path / "a.html", tmp_path / "a.json")
    assert "schemaVersion" in json.loads((tmp_path / "a.json").read_text())
    assert "own-event" in (tmp_path / "a.html").read_text()
    assert b"<testsuites" in (tmp_path / "a.xml").read_bytes()
    check._write(REPORT, None, None, None)
    assert len([*tmp_path.iterdir()]) == 3


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    place = tmp_path / "none" / "a.html"
    with pytest.raises(check.Usage, match=r"cannot write .*a\.html: No such file"):
        check._write(REPORT, None, place, None)
