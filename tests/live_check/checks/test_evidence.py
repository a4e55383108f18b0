"""The live check finds bugs of the program, and a history that contradicts the instances."""

import pytest
from msgspec.structs import replace

from fairwarning.live_check.checks import check
from fairwarning.live_check.checks.evidence import Evidence
from fairwarning.live_check.records import Fault, NodeChange
from tests.live_check.checks.broken_rounds import (
    Break,
    assert_only_broken,
    cases,
    hide_documents,
    request_of,
)
from tests.live_check.round_builder import RoundBuilder, at, good_round


def answer_with_a_bug(make: RoundBuilder) -> None:
    make.records.add(replace(request_of(make, "schedule-DUE"), label="x", status=500, answer=None))


def answer_an_approval_with_a_bug(make: RoundBuilder) -> None:
    make.approve("web-0", "DUE", 2, status=500)


def die(make: RoundBuilder) -> None:
    make.records.nodes.append(NodeChange(node="node-1.1", change="died", at=at(9)))


def log_a_bug(make: RoundBuilder) -> None:
    make.records.nodes.append(NodeChange(node="node-1.1", change="error", at=at(9)))


def note_who_did_not_ask(make: RoundBuilder) -> None:
    make.seen("DUE", "web-1", 1.2)


def note_who_was_not_shown_it(make: RoundBuilder) -> None:
    """It asked, but in a version that does not show this type."""
    make.scheduled("EVICTION", ["web-0"], 23, 24, type="Preempt")
    make.ask("schedule", "EVICTION", 22.99, notice="1s")
    make.seen("EVICTION", "web-0", 23.1)
    make.ended("EVICTION", "Cancelled", 23.5)
    hide_documents(make)
    for poll in make.records.polls:
        poll.version = "2017-03-01"


BROKEN: dict[str, dict[Break, str]] = {
    "the program itself": {
        answer_with_a_bug: "was answered with 500",
        answer_an_approval_with_a_bug: "an approval by web-0 was answered with 500",
        die: "ended by itself",
        log_a_bug: "tells of a bug",
    },
    "the history itself": {
        note_who_did_not_ask: "web-1 saw it",
        note_who_was_not_shown_it: "web-0 saw it",
    },
}


@pytest.mark.parametrize(("promise", "break_it", "words"), cases(BROKEN))
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break, words: str) -> None:
    assert_only_broken(promise, break_it, words)


def test_a_round_that_keeps_every_promise_has_no_findings() -> None:
    assert check(good_round().records) == []


def test_a_step_of_the_databases_clock_is_allowed_for() -> None:
    make = good_round()
    before_ms = Evidence(make.records).slack_ms
    make.records.add(
        Fault(
            name="db-clock", detail="", began=at(1), ended=at(2), writable=at(2), clock_step_ms=500
        )
    )
    assert Evidence(make.records).slack_ms == before_ms + 500
