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


def change_end(make: RoundBuilder, id: str, kind: str) -> None:
    """Let the event have ended in another way."""
    next(e for e in make.records.history if e.event == id and e.kind == "Completed").kind = kind


def hide_documents(make: RoundBuilder, before: float = 99) -> None:
    """Let no poll up to then have got an answer."""
    for poll in make.records.polls:
        if poll.sent.mono_s < at(before).mono_s:
            poll.status = poll.document = poll.answered = None


def request_of(make: RoundBuilder, label: str) -> Request:
    return next(each for each in make.records.requests if each.label == label)


def broken(make: RoundBuilder) -> set[str]:
    return {finding.promise for finding in check(make.records)}


def restart(make: RoundBuilder, name: str, *, at_second: float, lasts: float = 0.4) -> None:
    """An owner restarts the instance, while DUE is under way or not."""
    make.scheduled("RESTART", [name], 1, 3, operation="restart")
    make.ask("restart", "RESTART", 0.99)
    make.started("RESTART", 3.001)
    make.impact("RESTART", [name], at_second, lasts=lasts)
    make.ended("RESTART", "Completed", at_second + lasts + 0.1)
    hide_documents(make)


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


def lose_the_approval_that_started_it(make: RoundBuilder) -> None:
    """An instance has asked, but the history has no approval, so nothing let it start."""
    drop(make.records, "Approved", "APPROVED")


def only_a_stranger_asked_to_approve(make: RoundBuilder) -> None:
    nobody_asked_to_approve(make)
    make.approve("db-0", "APPROVED", 4.9, status=400)


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


def delete_silently(make: RoundBuilder) -> None:
    make.scheduled("SILENT", ["workers_0"], 8, 8, operation="delete", announced=False)
    make.started("SILENT", 8)
    make.ask("delete", "SILENT", 7.99)
    make.impact("SILENT", ["workers_0"], 8.05)
    make.ended("SILENT", "Completed", 8.6)


def leave_before_the_event_is_over(make: RoundBuilder) -> None:
    history = make.records.history
    gone = next(e for e in history if e.kind == "InstanceDeleted")
    started = next(e for e in history if e.event == "DELETE-0" and e.kind == "Started")
    history.remove(gone)
    history.insert(history.index(started), gone)


def leave_without_an_event(make: RoundBuilder) -> None:
    make.deleted("db-0", 14)


def leave_though_the_event_failed(make: RoundBuilder) -> None:
    change_end(make, "DELETE-0", "Failed")
    for call in make.records.driver:
        if call.key == "DELETE-0" and call.what == "end":
            call.outcome = "failed"


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


def repeat_after_asking_about_another_attempt(make: RoundBuilder) -> None:
    """What the driver said to an earlier attempt may have changed since."""
    for call in make.records.driver:
        if call.what == "find":
            call.attempt = 1


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


# 5. Nothing acknowledged is lost.


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
    answer["timeline"][0] = {**answer["timeline"][0], "data": {}}


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


def lose_an_approval(make: RoundBuilder) -> None:
    make.scheduled("WAITING", ["db-0"], 14, 914)
    make.ask("schedule", "WAITING", 13.99)
    make.approve("db-0", "WAITING", 14.2)
    make.ended("WAITING", "Cancelled", 15)
    make.records.polls[:] = [poll for poll in make.records.polls if poll.instance != "db-0"]


def lose_an_approval_of_what_starts_later(make: RoundBuilder) -> None:
    """The start is no excuse: it came after the answer."""
    make.approve("web-0", "DUE", 1.8)


# 6. Same number, same document.


def show_two_documents_under_one_tag(make: RoundBuilder) -> None:
    first = make.records.polls[0]
    text = '{"DocumentIncarnation": 1,  "Events": []}'
    make.records.documents[text] = text
    make.records.polls.insert(1, replace(first, document=text))


def show_it_without_a_tag(make: RoundBuilder) -> None:
    make.records.polls[-1].tag = None


def name_another_number(make: RoundBuilder) -> None:
    make.records.polls[-1].tag = '"9-abc"'


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


def count_anew_and_say_that_nothing_changed(make: RoundBuilder) -> None:
    count_anew(make)
    poll = [each for each in make.records.polls if each.instance == "web-0"][-1]
    poll.status, poll.document = 304, None


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


def pass_the_barrier_of_an_earlier_delete(make: RoundBuilder) -> None:
    """What holds it may be due before it, as long as that is still to come."""
    pass_the_barrier(make)
    change_event(make, "DELETE-0", not_before_ms=BEGAN_MS + 320_000)
    answer = request_of(make, "delete-DELETE-0").answer
    assert answer is not None
    answer["notBefore"] = "2027-01-15T08:05:20Z"


# 9. Every event ends.


def never_end(make: RoundBuilder) -> None:
    make.scheduled("STUCK", ["db-0"], 14, 914)
    make.ask("schedule", "STUCK", 13.99)


def never_end_once_seen(make: RoundBuilder) -> None:
    never_end(make)
    make.poll("db-0", 14.2)
    make.seen("STUCK", "db-0", 14.21)
    hide_documents(make)


def go_on_after_its_end(make: RoundBuilder) -> None:
    make.approved("DUE", "operator:local", 20)


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
    "1 never early": {
        begin_early: "began 100 ms before NotBefore",
        nobody_asked_to_approve: "nobody had approved it",
        only_a_stranger_asked_to_approve: "nobody had approved it",
        lose_the_approval_that_started_it: "nobody had approved it",
        approve_after_the_impact: "nobody had approved it",
        approve_by_a_policy_that_nobody_has: "nobody had approved it",
    },
    "2 enough notice": {
        give_too_little_notice: "should have 3000",
        give_an_owner_too_little_notice: "should have 901000",
        give_a_delete_too_little_notice: "should have 301000",
        date_it_back: "before anybody asked for it",
        tell_another_not_before: "a caller was told",
        show_another_not_before: "web-0 was shown",
        operate_silently: "was not announced",
        delete_silently: "was not announced",
        leave_without_an_event: "is gone without an event",
        leave_before_the_event_is_over: "is gone without an event",
        leave_though_the_event_failed: "is gone without an event",
    },
    "3 one update domain at a time": {
        hit_two_domains_at_once: "it hit domain [1] while DUE",
        hit_a_domain_beside_one_of_two: "it hit domain [1] while DUE",
        hit_an_instance_twice_at_once: "it hit web-0 while DUE",
        span_two_domains: "the domains [0, 1]",
    },
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
    "6 same number, same document": {
        show_two_documents_under_one_tag: "names two documents",
        show_it_without_a_tag: "without a tag",
        name_another_number: 'the tag "9-abc" names incarnation 4',
        go_back: "what it had shown before",
        go_back_behind_a_tag: "the tag that it was sent",
        go_back_after_a_restart: "what was shown before it started",
        count_anew: "activated anew",
        count_anew_and_say_that_nothing_changed: "activated anew",
        show_what_never_was: "the history does not know it",
        show_less_than_there_is: "incarnation 5 showed {}",
    },
    "7 approving is idempotent and covers all resources": {
        note_an_approval_twice: "2 approvals by instance:web-1",
        refuse_an_approval: "was not let approve its own event",
        leave_an_instance_out: "leaves out web-1",
    },
    "8 terminate barrier": {
        pass_the_barrier: "while DELETE-1 was not approved",
        pass_the_barrier_of_an_earlier_delete: "while DELETE-1 was not approved",
    },
    "9 every event ends": {
        never_end: "has not ended",
        never_end_once_seen: "has not ended",
        end_twice: "has ended several times",
        go_on_after_its_end: "goes on after its end",
        show_it_for_ever: "still shows it",
    },
    "10 isolation": {
        show_it_to_strangers: "was shown an event of db-0",
        let_a_stranger_approve: "was let approve it",
        note_the_approval_of_a_stranger: "is not of its scope",
    },
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


@pytest.mark.parametrize(
    ("promise", "break_it", "words"),
    [(promise, each, words) for promise, all in BROKEN.items() for each, words in all.items()],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break, words: str) -> None:
    """The words say which check has found it: another one of the promise is not enough."""
    make = good_round()
    break_it(make)
    assert broken(make) == {promise}
    assert [each for each in check(make.records) if words in each.text]


def test_the_event_of_another_scope_is_found_though_its_instances_are_ours() -> None:
    make = good_round()
    for digest, text in make.records.documents.items():
        make.records.documents[digest] = text.replace(
            '"EventId": "APPROVED"', '"EventId": "POLICY"'
        )
    assert "10 isolation" in broken(make)


# What looks like a broken promise and is none.


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


def test_a_pause_that_was_over_before_excuses_nothing() -> None:
    make = good_round()
    order_what_was_taken_away(make)
    make.records.add(NodeChange(node="node-1.1", change="paused", at=at(5)))
    make.records.add(NodeChange(node="node-1.1", change="continued", at=at(8.9)))
    make.records.add(ClockReading(at=at(8.9), late_s=3.9))
    assert broken(make) == {"4 once"}


def test_a_pause_that_came_later_excuses_nothing() -> None:
    make = good_round()
    order_what_was_taken_away(make)
    make.records.add(NodeChange(node="node-1.1", change="paused", at=at(24)))
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


def test_each_version_has_its_own_document_under_a_tag() -> None:
    make = good_round()
    text = '{"DocumentIncarnation": 1,  "Events": []}'
    make.records.documents[text] = text
    make.records.polls.insert(
        1, replace(make.records.polls[0], document=text, version="2017-11-01")
    )
    assert check(make.records) == []


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
