"""The live check finds impacts that are carried out twice, or without an order."""

import pytest

from fairwarning.live_check.checks import check
from fairwarning.live_check.records import ClockReading, NodeChange
from tests.live_check.checks.broken_rounds import (
    Break,
    assert_only_broken,
    broken,
    cases,
    change_end,
    drop,
    hide_documents,
)
from tests.live_check.round_builder import RoundBuilder, at, good_round


def order_an_attempt_twice(make: RoundBuilder) -> None:
    pid = make.order("DUE", ["web-0"], 3.7)
    make.call("join", "DUE", 3.71, pid=pid, outcome="done")


def carry_out_twice(make: RoundBuilder) -> None:
    """As a driver without a memory would."""
    make.call("begin", "APPROVED", 5.47, pid=5)
    make.call("end", "APPROVED", 5.48, pid=5, outcome="done")
    make.order("APPROVED", ["web-1"], 5.46, pid=5)


def carry_out_while_it_is_carried_out(make: RoundBuilder) -> None:
    for call in make.records.driver:
        if call.key == "LOST" and call.what == "end" and call.attempt == 1:
            call.at = at(19.3)


def repeat_after_asking_about_another_attempt(make: RoundBuilder) -> None:
    """What the driver said to an earlier attempt may have changed since."""
    for call in make.records.driver:
        if call.what == "find":
            call.attempt = 1


def repeat_blindly(make: RoundBuilder) -> None:
    make.records.driver[:] = [call for call in make.records.driver if call.what != "find"]


def repeat_what_is_running(make: RoundBuilder) -> None:
    for call in make.records.driver:
        if call.what == "find":
            call.outcome = "running"


def order_a_lower_attempt(make: RoundBuilder) -> None:
    """Attempt 1 of LOST comes to the driver only after attempt 2."""
    make.records.driver[:] = [
        call for call in make.records.driver if call.key != "LOST" or call.attempt == 2
    ]
    pid = make.order("LOST", ["web-0"], 19.55)
    make.call("refuse", "LOST", 19.56, pid=pid)


def order_what_was_taken_away(make: RoundBuilder) -> None:
    """Attempt 1 of LOST is ordered only after the history has given it up."""
    make.records.driver[:] = [
        call for call in make.records.driver if call.key != "LOST" or call.attempt == 2
    ]
    make.impact("LOST", ["web-0"], 19.02, lasts=0.01, outcome="failed")


def order_what_nobody_has(make: RoundBuilder) -> None:
    """The attempt was given up, and no other one follows it."""
    make.scheduled("ORPHAN", ["web-0"], 20, 22)
    make.ask("schedule", "ORPHAN", 19.99, notice="2s")
    make.started("ORPHAN", 22)
    make.attempt_lost("ORPHAN", 1, 22.5)
    make.order("ORPHAN", ["web-0"], 22.6)
    make.ended("ORPHAN", "Failed", 23)
    hide_documents(make)


def order_before_having_it(make: RoundBuilder) -> None:
    next(c for c in make.records.driver if c.key == "DUE" and c.what == "do").at = at(2.9)


def cancel_what_has_started(make: RoundBuilder) -> None:
    change_end(make, "DUE", "Cancelled")


def order_what_was_cancelled(make: RoundBuilder) -> None:
    make.order("CANCELLED", ["web-0"], 6.45)


def act_without_an_event(make: RoundBuilder) -> None:
    make.impact("NOBODY-KNOWS", ["web-0"], 26)


def act_without_having_it(make: RoundBuilder) -> None:
    drop(make.records, "HandedOver", "DUE")


def complete_without_an_impact(make: RoundBuilder) -> None:
    make.records.driver[:] = [call for call in make.records.driver if call.key != "POLICY"]


def complete_before_the_impact_ends(make: RoundBuilder) -> None:
    for call in make.records.driver:
        if call.key == "POLICY" and call.what == "end":
            call.at = at(10.6)


def complete_what_the_driver_never_finished(make: RoundBuilder) -> None:
    make.records.driver[:] = [
        call for call in make.records.driver if (call.key, call.what) != ("POLICY", "end")
    ]


def fail_what_was_done(make: RoundBuilder) -> None:
    change_end(make, "POLICY", "Failed")


BROKEN: dict[str, dict[Break, str]] = {
    "4 once": {
        order_an_attempt_twice: "was ordered again",
        carry_out_twice: "was carried out again",
        carry_out_while_it_is_carried_out: "was carried out again",
        repeat_blindly: "ordered blindly",
        repeat_after_asking_about_another_attempt: "ordered blindly",
        repeat_what_is_running: "find had answered running",
        order_a_lower_attempt: "after attempt 2",
        order_what_was_taken_away: "after the history says AttemptLost",
        order_what_nobody_has: "after the history says AttemptLost",
        order_what_was_cancelled: "it was cancelled, and the driver was called",
        order_before_having_it: "had handed it to nobody",
        act_without_an_event: "the history has no such event",
        act_without_having_it: "had handed it to nobody",
        cancel_what_has_started: "it was cancelled after it had started",
        complete_without_an_impact: "the driver never did it",
        complete_what_the_driver_never_finished: "the driver never did it",
        complete_before_the_impact_ends: "before the driver was done",
        fail_what_was_done: "the driver had done it",
    },
}


@pytest.mark.parametrize(("promise", "break_it", "words"), cases(BROKEN))
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break, words: str) -> None:
    assert_only_broken(promise, break_it, words)


@pytest.mark.parametrize("is_continued", [True, False])
@pytest.mark.parametrize("break_it", [order_a_lower_attempt, order_what_was_taken_away])
def test_a_server_that_was_paused_may_order_late(break_it: Break, is_continued: bool) -> None:
    """It can't know that its lease is over; the driver refuses a lower attempt than it has seen."""
    make = good_round()
    break_it(make)
    make.records.add(NodeChange(node="node-1.1", change="paused", at=at(9.01)))
    if is_continued:
        make.records.add(NodeChange(node="node-1.1", change="continued", at=at(19.01)))
    assert check(make.records) == []


def test_a_pause_that_came_later_excuses_nothing() -> None:
    make = good_round()
    order_what_was_taken_away(make)
    make.records.add(NodeChange(node="node-1.1", change="paused", at=at(24)))
    assert broken(make) == {"4 once"}


def test_a_pause_that_was_over_before_excuses_nothing() -> None:
    make = good_round()
    order_what_was_taken_away(make)
    make.records.add(NodeChange(node="node-1.1", change="paused", at=at(5)))
    make.records.add(NodeChange(node="node-1.1", change="continued", at=at(8.9)))
    make.records.add(ClockReading(at=at(8.9), late_s=3.9))
    assert broken(make) == {"4 once"}


def test_a_machine_that_stood_still_may_order_late() -> None:
    make = good_round()
    order_what_was_taken_away(make)
    make.records.add(ClockReading(at=at(19.01), late_s=9.9))
    assert check(make.records) == []


def test_a_driver_that_was_killed_may_begin_again() -> None:
    make = good_round()
    make.records.driver[:] = [
        call
        for call in make.records.driver
        if (call.key, call.what, call.attempt) != ("LOST", "end", 1)
    ]
    assert check(make.records) == []


def test_the_next_attempt_of_the_same_node_takes_nothing_away() -> None:
    """A node whose lease ran out may get the next attempt itself, and goes on with the first."""
    make = good_round()
    order_what_was_taken_away(make)
    for entry in make.records.history:
        if entry.event == "LOST" and entry.kind == "HandedOver":
            entry.data["node"] = "n1"
    assert check(make.records) == []
