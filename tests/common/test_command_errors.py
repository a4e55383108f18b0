"""What a person sees on standard error when a command fails."""

import pytest

from fairwarning.common.command_errors import Problem, bad_file
from fairwarning.common.toml_table import Mistake


def test_an_error_says_its_place_its_code_and_all_that_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Problem("it\nbroke\x1b[31m", code="some-code", others=["and\nthis"]).show()
    Problem("no code").show()
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "fairwarning: it broke\N{REPLACEMENT CHARACTER}[31m (some-code)\nand this\n"
        "fairwarning: no code\n"
    )


def test_each_mistake_of_a_file_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    mistakes = [Mistake(line=None, message="a"), Mistake(line=3, message="b")]
    bad_file("fleet.toml", mistakes).show()
    assert capsys.readouterr().err == "fleet.toml: a\nfleet.toml:3: b\n"
