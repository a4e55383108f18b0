"""The live check finds impacts that come too early or with too little notice."""

import pytest

from fairwarning.live_check.checks import check
from fairwarning.live_check.records import ClockReading
from tests.live_check.checks.broken_rounds import (
    Break,
    assert_only_broken,
    broken,
    cases,
    change_end,
    drop,
    hide_documents,
    request_of,
)
from tests.live_check.round_builder import BEGAN_MS, RoundBuilder, at, good_round


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


def leave_though_the_event_failed(make: RoundBuilder) -> None:
    change_end(make, "DELETE-0", "Failed")
    for call in make.records.driver:
        if call.key == "DELETE-0" and call.what == "end":
            call.outcome = "failed"


def leave_before_the_event_is_over(make: RoundBuilder) -> None:
    history = make.records.history
    gone = next(e for e in history if e.kind == "InstanceDeleted")
    started = next(e for e in history if e.event == "DELETE-0" and e.kind == "Started")
    history.remove(gone)
    history.insert(history.index(started), gone)


def leave_without_an_event(make: RoundBuilder) -> None:
    make.deleted("db-0", 14)


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
}


@pytest.mark.parametrize(("promise", "break_it", "words"), cases(BROKEN))
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break, words: str) -> None:
    assert_only_broken(promise, break_it, words)


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
