"""Progress is shown on standard error, on a terminal often and in a log seldom."""

import sys

import pytest

from fairwarning.cli.progress import Progress


def shown(capsys: pytest.CaptureFixture[str], times: list[float]) -> str:
    """What is written if these are the times of the begin and of each report."""
    clock = iter(times)
    with Progress(lambda: next(clock)) as progress:
        for number in range(1, len(times)):
            progress.show(f"{number} done")
    out, err = capsys.readouterr()
    assert not out
    return err


def test_a_terminal_shows_one_line_that_is_cleared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = shown(capsys, [0, 0.1, 0.6, 0.65, 0.8])
    assert said == "\r\x1b[K2 done\r\x1b[K4 done\r\x1b[K"


def test_a_log_gets_a_line_from_time_to_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert shown(capsys, [0, 5, 11, 12, 22]) == "2 done\n4 done\n"


def test_a_short_command_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, [0, 0.1, 0.2]) == ""
