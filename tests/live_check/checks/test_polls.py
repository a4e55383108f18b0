"""Polls go on, and writes come back, whatever is done to the database and the network."""

import pytest

from fairwarning.live_check.checks import check
from fairwarning.live_check.checks.evidence import Evidence
from fairwarning.live_check.checks.polls import _BACK_S_MAX, poll_failures
from fairwarning.live_check.records import Fault, NodeChange
from tests.live_check.checks.broken_rounds import Break, assert_only_broken, cases
from tests.live_check.round_builder import RoundBuilder, at, good_round

NODE = "node-1.1"


def fail_a_poll(make: RoundBuilder, sent: float = 8, failed: float = 9) -> None:
    poll = make.unanswered_poll("web-0", sent)
    poll.failed = at(failed)


def answer_a_poll_with_an_outage(make: RoundBuilder) -> None:
    poll = make.unanswered_poll("web-0", 8)
    poll.answered, poll.status = at(8.1), 503


def never_write_again(make: RoundBuilder) -> None:
    make.records.add(
        Fault(name="cut", detail="node-1", began=at(200), ended=at(205), writable=at(205))
    )
    for second in (210, 206 + _BACK_S_MAX):
        make.approve("web-0", "DUE", second, status=503)


BROKEN: dict[str, dict[Break, str]] = {
    "polls go on": {
        fail_a_poll: "a poll at node-1.1 ended with no answer",
        answer_a_poll_with_an_outage: "a poll at node-1.1 ended with 503",
    },
    "writes come back": {never_write_again: "nothing was written within"},
}


@pytest.mark.parametrize(("promise", "break_it", "words"), cases(BROKEN))
def test_each_broken_promise_is_found(promise: str, break_it: Break, words: str) -> None:
    assert_only_broken(promise, break_it, words)


@pytest.mark.parametrize("changes", [["killed"], ["stopped"], ["paused", "continued"], ["paused"]])
def test_a_server_that_cannot_answer_need_not(changes: list[str]) -> None:
    make = good_round()
    fail_a_poll(make)
    for number, change in enumerate(changes):
        make.records.add(NodeChange(node=NODE, change=change, at=at(8.5 + number)))
    assert check(make.records) == []


def test_a_server_that_goes_on_must_answer_again() -> None:
    make = good_round()
    for change, second in (("paused", 6), ("continued", 7)):
        make.records.add(NodeChange(node=NODE, change=change, at=at(second)))
    fail_a_poll(make)
    assert {each.promise for each in check(make.records)} == {"polls go on"}


def outage(make: RoundBuilder, tag: str) -> None:
    answer_a_poll_with_an_outage(make)
    make.records.polls[-1].sent_tag = tag


def test_a_server_that_has_not_read_what_the_instance_saw_may_answer_503() -> None:
    make = good_round()
    outage(make, '"999-abc"')
    assert check(make.records) == []
    assert poll_failures(Evidence(make.records)).behind == make.records.polls[-1:]


def show(make: RoundBuilder, node: str, second: float) -> None:
    """A process shows the incarnation 999 of the scope of web-0."""
    shown = make.poll("web-1", second)
    shown.node, shown.tag, shown.status, shown.document = node, '"999-abc"', 304, None


@pytest.mark.parametrize(
    ("node", "second", "started", "expected"),
    [
        pytest.param(NODE, 7.0, 1.0, False, id="it had shown it"),
        pytest.param(NODE, 8.05, 1.0, True, id="it showed it later"),
        pytest.param("node-2.1", 7.0, 1.0, True, id="another one had shown it"),
        pytest.param("node-2.1", 7.0, 7.5, False, id="another one, before it started"),
    ],
)
def test_a_server_that_must_know_what_the_instance_saw_is_not_behind(
    node: str, second: float, started: float, expected: bool
) -> None:
    make = RoundBuilder()
    make.records.add(NodeChange(node=NODE, change="started", at=at(started)))
    show(make, node, second)
    outage(make, '"999-abc"')
    assert bool(poll_failures(Evidence(make.records)).behind) is expected


def test_an_instance_that_hangs_up_by_itself_has_no_failed_poll() -> None:
    make = good_round()
    make.unanswered_poll("web-0", 8)
    assert check(make.records) == []


def test_writes_are_not_missed_if_nobody_tried_long_enough() -> None:
    make = good_round()
    never_write_again(make)
    make.records.approvals.pop()
    assert check(make.records) == []


def test_one_success_after_a_fault_is_enough() -> None:
    make = good_round()
    never_write_again(make)
    make.approve("web-0", "DUE", 230)
    assert check(make.records) == []
