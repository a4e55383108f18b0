"""The lines of the agent's log: for people, and for programs."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from fairwarning.agent import logs


@pytest.fixture(autouse=True)
def the_root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def line(form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    logs.set_up(form)
    (handler,) = logging.getLogger().handlers
    try:
        raise OSError("it broke")
    except OSError:
        record = logging.LogRecord("x", logging.WARNING, "", 0, "a\nb", (), sys.exc_info())
    record.created = 1_767_225_600.25
    record.fields = {"event": "E1", "at": logging}
    return handler.format(record)


def test_json_has_the_time_the_fields_and_the_exception(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(line("json", monkeypatch, capsys))
    assert found["time"] == "2026-01-01T00:00:00.250Z"
    assert (found["level"], found["message"], found["event"]) == ("warning", "a\nb", "E1")
    assert "OSError: it broke" in found["exception"]


def test_people_read_one_line_and_then_the_exception(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *rest = line("human", monkeypatch, capsys).splitlines()
    assert first == "2026-01-01T00:00:00.250Z WARNING a\\nb"
    assert rest[-1] == "OSError: it broke"


def test_a_level_leaves_out_what_is_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "warning")
    logs.say("not this")
    logs.warn("but this", event="E1")
    assert [json.loads(each)["message"] for each in capsys.readouterr().err.splitlines()] == [
        "but this"
    ]
