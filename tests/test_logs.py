"""One line for each transition, for people or for machines."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from fairwarning import logs
from fairwarning.core.commands import Approve, Command, Schedule
from fairwarning.core.decide import decide
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventType, NodeId, Scope, StartCause, operator_actor
from fairwarning.core.transitions import Activated, DocumentChanged, Forgotten, Started
from fairwarning.engine.protocols import Receipt
from fairwarning.logs import BufferedHandler
from tests.core.builders import E1, T0, names, web


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def commit(why: str = "") -> None:
    at = Instant(1_600_000_000_000)
    transitions = (
        Activated(at_ms=at),
        DocumentChanged(incarnation=2),
        Forgotten(event_ids=(), names=()),
    )
    receipt = Receipt(scope=web(), at_ms=at, transitions=transitions)
    logs.log_commit(receipt, operator_actor("ada"), why, 0.0123)


def test_a_machine_gets_the_parts_of_each_transition(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "info")
    commit("patch day")
    first, second = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (first["kind"], second["kind"]) == ("Activated", "DocumentChanged")
    assert (first["by"], first["why"]) == ("operator:ada", "patch day")
    assert first["scope"] == web().id
    assert first["took_ms"] == 12.3


def test_a_person_gets_a_sentence_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("human", "info")
    logging.getLogger("x").warning("two\nlines")
    commit()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith("two\\nlines")


def test_a_line_says_once_which_event_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("human", "info")
    scope = decided(web(), Schedule(event_id=E1, type=EventType.REBOOT, targets=names("web-0")))
    announced = capsys.readouterr().err
    decided(scope, Approve(event_id=E1, by=operator_actor("ada")))
    approved = capsys.readouterr().err.splitlines()
    assert announced.count("web-0") == 1
    assert approved
    assert all(f"Reboot of web-0 ({E1}) " in line for line in approved if "document" not in line)


def decided(scope: Scope, command: Command) -> Scope:
    change = decide(scope, command, T0, node=NodeId("n1"))
    receipt = Receipt(scope=change.scope, at_ms=T0, transitions=change.transitions)
    logs.log_commit(receipt, operator_actor("ada"), "", 0.0)
    return change.scope


@pytest.mark.parametrize("form", logs.FORMATS)
def test_an_exception_is_logged_with_where_it_came_from(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up(form, "info")
    try:
        raise KeyError("the cause")
    except KeyError:
        logging.getLogger("x").exception("it broke")
    found = capsys.readouterr().err
    assert "KeyError: 'the cause'" in found
    assert "test_an_exception_is_logged_with_where_it_came_from" in found
    if form == "json":
        assert "Traceback" in json.loads(found)["exception"]


def test_the_information_of_libraries_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("human", "info")
    logging.getLogger("httpx").info("a request")
    logging.getLogger("uvicorn.error").warning("a bad request")
    assert capsys.readouterr().err == ""


def test_a_line_that_cannot_be_written_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logs.set_up("human", "info")
    logging.getLogger("x").warning("%d", "no number")
    logging.getLogger("x").warning("the next one")
    assert len(capsys.readouterr().err.splitlines()) == 1
    closed = BufferedHandler(io.StringIO())
    closed.stream.close()
    closed.handle(logging.LogRecord("x", logging.WARNING, "", 0, "nobody reads", None, None))


def test_a_higher_level_leaves_the_transitions_out(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "warning")
    commit()
    assert capsys.readouterr().err == ""


async def test_the_lines_of_a_turn_are_written_together(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("human", "info")
    for _ in range(2):  # The lines of a later turn are written too, and none twice.
        commit()
        commit()
        assert capsys.readouterr().err == ""
        await asyncio.sleep(0)
        assert len(capsys.readouterr().err.splitlines()) == 4


async def test_a_warning_is_written_at_once_and_after_what_came_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up("human", "info")
    commit()
    logging.getLogger("x").warning("look here")
    first, _, last = capsys.readouterr().err.splitlines()
    assert "INFO" in first
    assert last.endswith("look here")


async def test_what_another_thread_says_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("human", "info")
    commit()
    await asyncio.to_thread(logging.getLogger("x").info, "from afar")
    assert "from afar" in capsys.readouterr().err


def test_what_waits_for_a_loop_that_ended_is_written_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up("human", "info")

    async def last_words() -> None:
        commit()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(last_words())
    loop.close()
    logging.getLogger().handlers[0].flush()
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_late_start_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("human", "warning")
    started = Started(event_id=E1, cause=StartCause.DUE, at_ms=T0, late_ms=90_000)
    for late_ms in (90_000, 0):
        transitions = (replace(started, late_ms=late_ms),)
        receipt = Receipt(scope=web(), at_ms=T0, transitions=transitions)
        logs.log_commit(receipt, operator_actor("ada"), "", 0.1)
    (line,) = capsys.readouterr().err.splitlines()
    assert "started 90 s late" in line
