"""The live check finds impacts on two update domains at once, and a broken terminate barrier."""

import pytest

from fairwarning.live_check.checks import check
from tests.live_check.checks.broken_rounds import (
    Break,
    assert_only_broken,
    cases,
    change_event,
    hide_documents,
    request_of,
    restart,
)
from tests.live_check.round_builder import BEGAN_MS, RoundBuilder, good_round


def hit_two_domains_at_once(make: RoundBuilder) -> None:
    make.scheduled("ALSO", ["web-1"], 1, 3)
    make.ask("schedule", "ALSO", 0.99, notice="2s")
    make.started("ALSO", 3.001)
    make.impact("ALSO", ["web-1"], 3.1)
    make.ended("ALSO", "Completed", 3.7)
    hide_documents(make)


def hit_an_instance_twice_at_once(make: RoundBuilder) -> None:
    """An owner's restart does not wait for other domains, but for its own instance."""
    restart(make, "web-0", at_second=3.1)


def hit_a_domain_beside_one_of_two(make: RoundBuilder) -> None:
    """What ended in between does not hide what goes on since before it."""
    restart(make, "web-1", at_second=3.1, lasts=0.05)
    make.scheduled("ALSO", ["web-1"], 1, 3)
    make.ask("schedule", "ALSO", 0.99, notice="2s")
    make.started("ALSO", 3.2)
    make.impact("ALSO", ["web-1"], 3.3, lasts=0.05)
    make.ended("ALSO", "Completed", 3.7)
    hide_documents(make)


def span_two_domains(make: RoundBuilder) -> None:
    make.scheduled("BOTH", ["web-0", "web-1"], 20, 22)
    make.ask("schedule", "BOTH", 19.99, notice="2s")
    make.started("BOTH", 22)
    make.impact("BOTH", ["web-0", "web-1"], 22.05)
    make.ended("BOTH", "Completed", 22.6)
    hide_documents(make)


def pass_the_barrier(make: RoundBuilder) -> None:
    history = make.records.history
    second = next(e for e in history if e.event == "DELETE-1" and e.kind == "Approved")
    started = next(e for e in history if e.event == "DELETE-0" and e.kind == "Started")
    history.remove(second)
    history.insert(history.index(started) + 1, second)


def pass_the_barrier_of_an_earlier_delete(make: RoundBuilder) -> None:
    """What holds it may be due before it, as long as that is still to come."""
    pass_the_barrier(make)
    change_event(make, "DELETE-0", not_before_ms=BEGAN_MS + 320_000)
    answer = request_of(make, "delete-DELETE-0").answer
    assert answer is not None
    answer["notBefore"] = "2027-01-15T08:05:20Z"


BROKEN: dict[str, dict[Break, str]] = {
    "3 one update domain at a time": {
        hit_two_domains_at_once: "it hit domain [1] while DUE",
        hit_a_domain_beside_one_of_two: "it hit domain [1] while DUE",
        hit_an_instance_twice_at_once: "it hit web-0 while DUE",
        span_two_domains: "the domains [0, 1]",
    },
    "8 terminate barrier": {
        pass_the_barrier: "while DELETE-1 was not approved",
        pass_the_barrier_of_an_earlier_delete: "while DELETE-1 was not approved",
    },
}


@pytest.mark.parametrize(("promise", "break_it", "words"), cases(BROKEN))
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break, words: str) -> None:
    assert_only_broken(promise, break_it, words)


@pytest.mark.parametrize("second", [2.9, 3.1])
def test_an_owners_restart_waits_for_no_other_domain(second: float) -> None:
    """Neither for one that is under way already, nor does one wait for it."""
    make = good_round()
    restart(make, "web-1", at_second=second)
    make.approved("RESTART", "operator:local", 1.5)
    make.ask("approve", "RESTART", 1.5)
    history = make.records.history
    started = next(e for e in history if e.event == "RESTART" and e.kind == "Started")
    history.insert(history.index(started), history.pop())
    started.at_ms = BEGAN_MS + 1500
    handed = next(e for e in history if e.event == "RESTART" and e.kind == "HandedOver")
    handed.at_ms = BEGAN_MS + 1500
    assert check(make.records) == []


def test_a_failure_whose_driver_is_first_waits_for_nobody_either() -> None:
    """It started last by the history, though its driver began before the other one's."""
    make = RoundBuilder()
    make.scheduled("SLOW", ["web-0"], 1, 3)
    make.ask("schedule", "SLOW", 0.99, notice="2s")
    make.started("SLOW", 3)
    make.scheduled("HAPPENED", ["web-1"], 3.1, 4)
    make.ask("schedule", "HAPPENED", 3.09, alreadyHappened=True)
    make.started("HAPPENED", 3.1)
    make.impact("HAPPENED", ["web-1"], 3.2)
    make.impact("SLOW", ["web-0"], 3.3)
    make.ended("HAPPENED", "Completed", 3.8)
    make.ended("SLOW", "Completed", 3.9)
    assert check(make.records) == []


def test_a_delete_that_is_asked_for_later_holds_nobody() -> None:
    make = RoundBuilder()
    for number, name in enumerate(("workers_0", "workers_1")):
        make.scheduled(
            f"DELETE-{number}", [name], 11 + 3 * number, 311 + 3 * number, operation="delete"
        )
        make.ask("delete", f"DELETE-{number}", 10.99 + 3 * number)
        make.approved(f"DELETE-{number}", f"instance:{name}", 12 + 3 * number)
        make.approve(name, f"DELETE-{number}", 12 + 3 * number)
        make.started(f"DELETE-{number}", 12 + 3 * number)
        make.impact(f"DELETE-{number}", [name], 12.05 + 3 * number)
        make.ended(f"DELETE-{number}", "Completed", 12.6 + 3 * number)
        make.deleted(name, 12.6 + 3 * number)
    assert check(make.records) == []
