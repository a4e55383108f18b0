"""One line for each transition, for people or for machines."""

import json
import logging
from collections.abc import Iterator

import pytest

from fairwarning import logs
from fairwarning.core.instants import Instant
from fairwarning.core.model import operator_actor
from fairwarning.core.transitions import Activated, DocumentChanged, Forgotten
from fairwarning.engine.ports import Receipt
from tests.core.builders import web


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


def test_a_higher_level_leaves_the_transitions_out(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("json", "warning")
    commit()
    assert capsys.readouterr().err == ""
