"""The live check finds answers that turn out to be untrue."""

import pytest
from msgspec.structs import replace

from fairwarning.live_check.checks import check
from tests.live_check.checks.broken_rounds import (
    Break,
    assert_only_broken,
    cases,
    change_event,
    request_of,
)
from tests.live_check.round_builder import RoundBuilder, at, good_round


def lose_an_event(make: RoundBuilder) -> None:
    make.scheduled("GONE", ["db-0"], 14, 914)
    make.ask("schedule", "GONE", 13.99)
    make.records.history[-2:] = []


def lose_a_line(make: RoundBuilder) -> None:
    answer = request_of(make, "schedule-LOST").answer
    assert answer is not None
    answer["timeline"].append({"position": "999", "kind": "Seen", "data": {}})


def change_a_line(make: RoundBuilder) -> None:
    """The history has another line where a caller was shown one."""
    answer = request_of(make, "schedule-LOST").answer
    assert answer is not None
    first = answer["timeline"][0]
    answer["timeline"][0] = {**first, "data": {**first["data"], "event_id": "another"}}


def tell_other_resources(make: RoundBuilder) -> None:
    answer = request_of(make, "schedule-DUE").answer
    assert answer is not None
    answer["resources"] = ["web-1"]


def lose_an_instance(make: RoundBuilder) -> None:
    request = request_of(make, "schedule-DUE")
    make.records.add(replace(request, label="scale-1", what="scale", answer={"added": ["db-9"]}))


def say_yes_and_do_nothing(make: RoundBuilder) -> None:
    """A success that names the event of another request."""
    request = replace(request_of(make, "schedule-DUE"), label="another", sent=at(2))
    make.records.add(request)


def cancel_and_go_on(make: RoundBuilder) -> None:
    make.ask("cancel", "DUE", 2)


def refuse_and_do_it(make: RoundBuilder) -> None:
    request = request_of(make, "schedule-DUE")
    request.status, request.answer = 409, {"code": "already-pending"}


def do_it_twice(make: RoundBuilder) -> None:
    """One request with a key, asked twice, has made two events."""
    make.scheduled("AGAIN", ["db-0"], 14, 914, label="schedule-AGAIN")
    make.ended("AGAIN", "Cancelled", 14.5)
    make.ask("schedule", "AGAIN", 13.99)
    make.scheduled("AGAIN-2", ["db-0"], 15, 915, label="schedule-AGAIN")
    make.ended("AGAIN-2", "Cancelled", 15.5)
    second = make.ask("schedule", "AGAIN-2", 14.99)
    second.label = "schedule-AGAIN"
    make.records.polls[:] = [poll for poll in make.records.polls if poll.instance != "db-0"]


def raise_two_events(make: RoundBuilder) -> None:
    """The same, and the second answer was lost on its way."""
    do_it_twice(make)
    second = make.records.requests[-1]
    second.status = second.answer = second.answered = None


def lose_an_approval_of_what_starts_later(make: RoundBuilder) -> None:
    """The start is no excuse: it came after the answer."""
    make.approve("web-0", "DUE", 1.8)


def lose_an_approval(make: RoundBuilder) -> None:
    make.scheduled("WAITING", ["db-0"], 14, 914)
    make.ask("schedule", "WAITING", 13.99)
    make.approve("db-0", "WAITING", 14.2)
    make.ended("WAITING", "Cancelled", 15)
    make.records.polls[:] = [poll for poll in make.records.polls if poll.instance != "db-0"]


def note_an_approval_twice(make: RoundBuilder) -> None:
    make.approved("APPROVED", "instance:web-1", 5.1)
    history = make.records.history
    end = next(e for e in history if e.event == "APPROVED" and e.kind == "Started")
    history.insert(history.index(end), history.pop())


def refuse_an_approval(make: RoundBuilder) -> None:
    make.approve("web-0", "DUE", 2, status=400)


def leave_an_instance_out(make: RoundBuilder) -> None:
    change_event(make, "DUE", resources=["web-0", "web-1"])
    for request in make.records.requests:
        if request.answer is not None and request.answer["id"] == "DUE":
            request.answer["resources"] = ["web-0", "web-1"]


BROKEN: dict[str, dict[Break, str]] = {
    "5 nothing acknowledged is lost": {
        lose_an_event: "the event is gone",
        lose_a_line: "a caller was shown Seen at 999",
        change_a_line: "a caller was shown Scheduled at",
        tell_other_resources: "another scope, type or resources",
        lose_an_instance: "db-9 was added, and it is gone",
        say_yes_and_do_nothing: "was not done",
        cancel_and_go_on: "was not done",
        refuse_and_do_it: "was refused (already-pending)",
        raise_two_events: "has raised 2 events",
        do_it_twice: "was answered with AGAIN, AGAIN-2",
        lose_an_approval: "the history has no approval",
        lose_an_approval_of_what_starts_later: "the history has no approval",
    },
    "7 approving is idempotent and covers all resources": {
        note_an_approval_twice: "2 approvals by instance:web-1",
        refuse_an_approval: "was not let approve its own event",
        leave_an_instance_out: "leaves out web-1",
    },
}


@pytest.mark.parametrize(("promise", "break_it", "words"), cases(BROKEN))
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break, words: str) -> None:
    assert_only_broken(promise, break_it, words)


@pytest.mark.parametrize("code", ["idempotency-in-progress", "resource-busy"])
def test_a_refusal_that_says_nothing_of_an_earlier_try_loses_nothing(code: str) -> None:
    make = good_round()
    refuse_and_do_it(make)
    request_of(make, "schedule-DUE").answer = {"code": code}
    assert check(make.records) == []


def test_whoever_was_deleted_may_be_refused() -> None:
    make = good_round()
    make.approve("workers_0", "DELETE-1", 14, status=400)
    assert check(make.records) == []
