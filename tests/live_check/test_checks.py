"""Each promise of the live check: a round that keeps it, and what breaks it and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fairwarning.live_check.checks import check
from fairwarning.live_check.records import ClockReading, NodeChange, Records, Request
from tests.live_check.round_builder import BEGAN_MS, RoundBuilder, at, good_round

Break = Callable[[RoundBuilder], None]


def test_a_round_that_keeps_every_promise_has_no_findings() -> None:
    assert check(good_round().records) == []


def drop(records: Records, kind: str, id: str | None = None) -> None:
    """Take such a line out of the history."""
    kept = [e for e in records.history if e.kind != kind or (id is not None and e.event != id)]
    assert len(kept) < len(records.history)
    records.history[:] = kept


def change_event(make: RoundBuilder, id: str, **changes: Any) -> None:
    """Let the history say something else about the event from the beginning."""
    for entry in make.records.history:
        if entry.kind == "Scheduled" and entry.event == id:
            entry.data["event"].update(changes)


def hide_documents(make: RoundBuilder, before: float = 99) -> None:
    """Let no poll up to then have got an answer."""
    for poll in make.records.polls:
        if poll.sent.mono_s < at(before).mono_s:
            poll.status = poll.document = poll.answered = None


def request_of(make: RoundBuilder, label: str) -> Request:
    return next(each for each in make.records.requests if each.label == label)


def broken(make: RoundBuilder) -> set[str]:
    return {finding.promise for finding in check(make.records)}


# 1. Never early.


def begin_early(make: RoundBuilder) -> None:
    begin = next(c for c in make.records.driver if c.key == "DUE" and c.what == "begin")
    order = next(c for c in make.records.driver if c.key == "DUE" and c.what == "do")
    begin.at, order.at = at(2.9), at(2.8)
    for entry in make.records.history:
        if entry.event == "DUE" and entry.kind in ("Started", "HandedOver"):
            entry.at_ms = BEGAN_MS + 2700


def nobody_asked_to_approve(make: RoundBuilder) -> None:
    """The history has an approval that no instance and no caller has sent."""
    make.records.approvals[:] = [
        each for each in make.records.approvals if each.events != ["APPROVED"]
    ]


def approve_after_the_impact(make: RoundBuilder) -> None:
    for each in make.records.approvals:
        if each.events == ["APPROVED"] and each.instance == "web-1":
            each.sent, each.answered = at(5.3), at(5.4)


def approve_by_a_policy_that_nobody_has(make: RoundBuilder) -> None:
    for scope in make.records.scopes:
        scope.policies = []


# 2. Enough notice.


def give_too_little_notice(make: RoundBuilder) -> None:
    request_of(make, "schedule-DUE").body = {"notice": "3s"}


def give_an_owner_too_little_notice(make: RoundBuilder) -> None:
    for scope in make.records.scopes:
        scope.minimum_notice_s = dict.fromkeys(scope.minimum_notice_s, 901)
        scope.test = True


def give_a_delete_too_little_notice(make: RoundBuilder) -> None:
    for scope in make.records.scopes:
        if scope.terminate_notice_s:
            scope.terminate_notice_s = 301


def date_it_back(make: RoundBuilder) -> None:
    request_of(make, "schedule-DUE").sent = at(1.5)


def tell_another_not_before(make: RoundBuilder) -> None:
    answer = request_of(make, "schedule-DUE").answer
    assert answer is not None
    answer["notBefore"] = "2027-01-15T08:00:09.000Z"


def show_another_not_before(make: RoundBuilder) -> None:
    for digest, text in make.records.documents.items():
        if '"DUE"' in text and "08:00:03" in text:
            make.records.documents[digest] = text.replace("08:00:03", "08:00:04")


def operate_silently(make: RoundBuilder) -> None:
    make.scheduled("SILENT", ["db-0"], 14, 14, operation="restart", announced=False)
    make.started("SILENT", 14)
    make.ask("restart", "SILENT", 13.99)
    make.impact("SILENT", ["db-0"], 14.05)
    make.ended("SILENT", "Completed", 14.6)


def leave_without_an_event(make: RoundBuilder) -> None:
    make.deleted("db-0", 14)


# 3. One update domain at a time.


def hit_two_domains_at_once(make: RoundBuilder) -> None:
    make.scheduled("ALSO", ["web-1"], 1, 3)
    make.ask("schedule", "ALSO", 0.99, notice="2s")
    make.started("ALSO", 3.001)
    make.impact("ALSO", ["web-1"], 3.1)
    make.ended("ALSO", "Completed", 3.7)
    hide_documents(make)


def hit_an_instance_twice_at_once(make: RoundBuilder) -> None:
    """An owner's restart does not wait for other domains, but for its own instance."""
    make.scheduled("RESTART", ["web-0"], 1, 3, operation="restart")
    make.ask("restart", "RESTART", 0.99)
    make.started("RESTART", 3.001)
    make.impact("RESTART", ["web-0"], 3.1)
    make.ended("RESTART", "Completed", 3.7)
    hide_documents(make)


def span_two_domains(make: RoundBuilder) -> None:
    make.scheduled("BOTH", ["web-0", "web-1"], 20, 22)
    make.ask("schedule", "BOTH", 19.99, notice="2s")
    make.started("BOTH", 22)
    make.impact("BOTH", ["web-0", "web-1"], 22.05)
    make.ended("BOTH", "Completed", 22.6)
    hide_documents(make)


# 4. Once.


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


# 5. Nothing acknowledged is lost.


def lose_an_event(make: RoundBuilder) -> None:
    make.scheduled("GONE", ["db-0"], 14, 914)
    make.ask("schedule", "GONE", 13.99)
    make.records.history[-2:] = []


def lose_a_line(make: RoundBuilder) -> None:
    answer = request_of(make, "schedule-LOST").answer
    assert answer is not None
    answer["timeline"].append({"position": "999", "kind": "Seen", "data": {}})


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


def lose_an_approval(make: RoundBuilder) -> None:
    make.scheduled("WAITING", ["db-0"], 14, 914)
    make.ask("schedule", "WAITING", 13.99)
    make.approve("db-0", "WAITING", 14.2)
    make.ended("WAITING", "Cancelled", 15)
    make.records.polls[:] = [poll for poll in make.records.polls if poll.instance != "db-0"]


# 6. Same number, same document.


def show_two_documents_under_one_tag(make: RoundBuilder) -> None:
    first = make.records.polls[0]
    text = '{"DocumentIncarnation": 1,  "Events": []}'
    make.records.documents[text] = text
    make.records.polls.insert(1, replace(first, document=text))


def go_back(make: RoundBuilder) -> None:
    first = make.records.polls[0]
    make.records.polls.append(replace(first, sent=at(24), answered=at(24.01)))


def go_back_behind_a_tag(make: RoundBuilder) -> None:
    """Another node that is behind answers with less than the instance says that it has."""
    first = make.records.polls[0]
    late = replace(first, sent=at(24), answered=at(24.01), node="node-2.1", sent_tag='"9-abc"')
    make.records.polls.append(late)


def go_back_after_a_restart(make: RoundBuilder) -> None:
    make.records.nodes.append(NodeChange(node="node-1.2", change="started", at=at(23)))
    first = make.records.polls[0]
    make.records.polls.append(replace(first, sent=at(24), answered=at(24.01), node="node-1.2"))


def count_anew(make: RoundBuilder) -> None:
    poll = [each for each in make.records.polls if each.instance == "web-0"][-1]
    poll.tag = (poll.tag or "").replace("abc", "abd")


def show_what_never_was(make: RoundBuilder) -> None:
    drop(make.records, "DocumentChanged")


def show_less_than_there_is(make: RoundBuilder) -> None:
    for digest, text in make.records.documents.items():
        if '"APPROVED"' in text:
            document = json.loads(text)
            document["Events"] = []
            make.records.documents[digest] = json.dumps(document)


# 7. Approving is idempotent and covers all resources.


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


# 8. Terminate barrier.


def pass_the_barrier(make: RoundBuilder) -> None:
    history = make.records.history
    second = next(e for e in history if e.event == "DELETE-1" and e.kind == "Approved")
    started = next(e for e in history if e.event == "DELETE-0" and e.kind == "Started")
    history.remove(second)
    history.insert(history.index(started) + 1, second)


# 9. Every event ends.


def never_end(make: RoundBuilder) -> None:
    make.scheduled("STUCK", ["db-0"], 14, 914)
    make.ask("schedule", "STUCK", 13.99)


def end_twice(make: RoundBuilder) -> None:
    history = make.records.history
    end = next(e for e in history if e.event == "DUE" and e.kind == "Completed")
    history.insert(history.index(end) + 1, replace(end, position="x"))


def show_it_for_ever(make: RoundBuilder) -> None:
    poll = next(p for p in make.records.polls if '"APPROVED"' in (p.document or ""))
    poll.is_last = True


# 10. Isolation.


def show_it_to_strangers(make: RoundBuilder) -> None:
    for digest, text in make.records.documents.items():
        if '"APPROVED"' in text:
            make.records.documents[digest] = text.replace('"web-1"', '"db-0"')


def let_a_stranger_approve(make: RoundBuilder) -> None:
    for approval in make.records.approvals:
        if approval.is_foreign:
            approval.status = 200


def note_the_approval_of_a_stranger(make: RoundBuilder) -> None:
    make.approved("DUE", "instance:db-0", 2)
    history = make.records.history
    started = next(e for e in history if e.event == "DUE" and e.kind == "Started")
    history.insert(history.index(started), history.pop())


# And the program itself.


def answer_with_a_bug(make: RoundBuilder) -> None:
    make.records.add(replace(request_of(make, "schedule-DUE"), label="x", status=500, answer=None))


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


BROKEN: dict[str, list[Break]] = {
    "1 never early": [
        begin_early,
        nobody_asked_to_approve,
        approve_after_the_impact,
        approve_by_a_policy_that_nobody_has,
    ],
    "2 enough notice": [
        give_too_little_notice,
        give_an_owner_too_little_notice,
        give_a_delete_too_little_notice,
        date_it_back,
        tell_another_not_before,
        show_another_not_before,
        operate_silently,
        leave_without_an_event,
    ],
    "3 one update domain at a time": [
        hit_two_domains_at_once,
        hit_an_instance_twice_at_once,
        span_two_domains,
    ],
    "4 once": [
        order_an_attempt_twice,
        carry_out_twice,
        carry_out_while_it_is_carried_out,
        repeat_blindly,
        repeat_what_is_running,
        order_a_lower_attempt,
        order_what_was_taken_away,
        order_what_was_cancelled,
        act_without_an_event,
        act_without_having_it,
        complete_without_an_impact,
        complete_before_the_impact_ends,
    ],
    "5 nothing acknowledged is lost": [
        lose_an_event,
        lose_a_line,
        say_yes_and_do_nothing,
        cancel_and_go_on,
        refuse_and_do_it,
        do_it_twice,
        lose_an_approval,
    ],
    "6 same number, same document": [
        show_two_documents_under_one_tag,
        go_back,
        go_back_behind_a_tag,
        go_back_after_a_restart,
        count_anew,
        show_what_never_was,
        show_less_than_there_is,
    ],
    "7 approving is idempotent and covers all resources": [
        note_an_approval_twice,
        refuse_an_approval,
        leave_an_instance_out,
    ],
    "8 terminate barrier": [pass_the_barrier],
    "9 every event ends": [never_end, end_twice, show_it_for_ever],
    "10 isolation": [
        show_it_to_strangers,
        let_a_stranger_approve,
        note_the_approval_of_a_stranger,
    ],
    "the program itself": [answer_with_a_bug, die, log_a_bug],
    "the history itself": [note_who_did_not_ask, note_who_was_not_shown_it],
}


@pytest.mark.parametrize(
    ("promise", "break_it"),
    [(promise, each) for promise, breaks in BROKEN.items() for each in breaks],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break) -> None:
    make = good_round()
    break_it(make)
    assert broken(make) == {promise}


# What looks like a broken promise and is none.


@pytest.mark.parametrize("break_it", [order_a_lower_attempt, order_what_was_taken_away])
def test_a_server_that_was_paused_may_order_late(break_it: Break) -> None:
    """It can't know that its lease is over; the driver refuses a lower attempt than it has seen."""
    make = good_round()
    break_it(make)
    make.records.add(NodeChange(node="node-1.1", change="paused", at=at(9.01)))
    make.records.add(NodeChange(node="node-1.1", change="continued", at=at(19.01)))
    assert check(make.records) == []


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


def test_a_clock_that_was_set_back_makes_nothing_early() -> None:
    make = good_round()
    begin_early(make)
    stepped = at(20)
    make.records.add(ClockReading(at=stepped._replace(wall_ms=stepped.wall_ms - 500), late_s=0))
    assert "1 never early" not in broken(make)


def test_an_operation_is_silent_while_nobody_watches() -> None:
    make = good_round()
    operate_silently(make)
    for scope in make.records.scopes:
        scope.activated = False
    hide_documents(make, before=14)
    assert check(make.records) == []


def test_a_node_that_is_behind_may_answer_who_has_no_tag() -> None:
    make = good_round()
    first = make.records.polls[0]
    make.records.polls.append(
        replace(first, sent=at(24), answered=at(24.01), node="node-2.1", sent_tag=None)
    )
    assert check(make.records) == []


@pytest.mark.parametrize(
    ("version", "types"),
    [
        ("2017-03-01", {"Freeze"}),
        ("2017-11-01", {"Freeze", "Preempt"}),
        ("2019-01-01", {"Freeze", "Preempt", "Terminate"}),
    ],
)
def test_an_old_version_shows_the_types_that_it_knows(version: str, types: set[str]) -> None:
    make = RoundBuilder()
    for type in ("Freeze", "Preempt", "Terminate"):
        make.scheduled(type, ["web-0"], 1, 301, type=type)
        make.ask("schedule", type, 0.99, notice="5m")
    poll = make.poll("web-0", 1.1, version=version)
    document = json.loads(make.records.documents[poll.document or ""])
    document["Events"] = [each for each in document["Events"] if each["EventType"] in types]
    if version == "2017-03-01":
        for each in document["Events"]:
            each["Resources"] = ["_web-0"]
    make.records.documents[poll.document or ""] = json.dumps(document)
    for type in ("Freeze", "Preempt", "Terminate"):
        make.ended(type, "Cancelled", 2)
    assert check(make.records) == []
