"""The lines of a streamed fleet become one plan, and a broken answer says how much is done."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from fairwarning.cli.api_client import Api
from fairwarning.cli.fleet_upload import PART_BYTES, Progress, send_fleet
from fairwarning.common.command_errors import Disconnected, Problem

PLAN = {"step": "plan", "scopes": 3, "kept": ["a"], "warnings": ["w"]}


class Server:
    """Answers with these lines; an exception among them is raised there."""

    def __init__(self, *lines: dict[str, Any] | BaseException) -> None:
        self._lines = lines
        self.sent = b""

    @contextmanager
    def send_large(
        self, *_: str, content: Iterable[bytes], size: int, **__: Any
    ) -> Iterator[Iterator[dict[str, Any]]]:
        self.sent = b"".join(content)
        assert len(self.sent) == size
        yield self._said()

    def _said(self) -> Iterator[dict[str, Any]]:
        for each in self._lines:
            if isinstance(each, BaseException):
                raise each
            yield each


def sent(server: Server, content: bytes = b"x") -> dict[str, Any]:
    api = cast(Api, server)
    return send_fleet(api, "PUT", "fleet", content=content, media_type="application/toml")


def test_the_lines_become_one_plan() -> None:
    server = Server(
        PLAN,
        {"step": "changes", "changes": [1, 2]},
        {"step": "changes", "changes": [3]},
        {"step": "progress", "done": 3, "scopes": 3},
        {"step": "done", "done": 3, "scopes": 3, "terminates": ["T"]},
    )
    content = b"y" * (PART_BYTES + 1)
    assert sent(server, content) == {
        "changes": [1, 2, 3],
        "kept": ["a"],
        "confirm": None,
        "warnings": ["w"],
        "terminates": ["T"],
    }
    assert server.sent == content


def test_an_older_server_answers_with_one_object() -> None:
    whole = {"changes": [1], "kept": [], "confirm": None}
    assert sent(Server(whole)) == whole


@pytest.mark.parametrize("end", [Disconnected("reset"), KeyboardInterrupt(), None])
def test_an_answer_that_breaks_off_says_how_much_is_done(end: BaseException | None) -> None:
    progress = {"step": "progress", "done": 2, "scopes": 3}
    server = Server(PLAN, progress, *([] if end is None else [end]))
    with pytest.raises(Problem, match=r"after 2 of 3 scopes.*run this again to finish"):
        sent(server)


def test_an_answer_that_breaks_off_before_any_change_says_where_to_look() -> None:
    with pytest.raises(Problem, match="fairwarning history"):
        sent(Server(PLAN, Disconnected("reset")))


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
