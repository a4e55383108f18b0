"""The live check finds documents that instances must not be shown."""

import json

import pytest
from msgspec.structs import replace

from fairwarning.live_check.checks import check
from fairwarning.live_check.records import NodeChange
from tests.live_check.checks.broken_rounds import (
    Break,
    assert_only_broken,
    broken,
    cases,
    drop,
    hide_documents,
)
from tests.live_check.round_builder import RoundBuilder, at, good_round


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


BROKEN: dict[str, dict[Break, str]] = {
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
}


@pytest.mark.parametrize(("promise", "break_it", "words"), cases(BROKEN))
def test_a_broken_promise_is_found_and_no_other(promise: str, break_it: Break, words: str) -> None:
    assert_only_broken(promise, break_it, words)


def test_the_event_of_another_scope_is_found_though_its_instances_are_ours() -> None:
    make = good_round()
    for digest, text in make.records.documents.items():
        make.records.documents[digest] = text.replace(
            '"EventId": "APPROVED"', '"EventId": "POLICY"'
        )
    assert "10 isolation" in broken(make)


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


def test_each_version_has_its_own_document_under_a_tag() -> None:
    make = good_round()
    text = '{"DocumentIncarnation": 1,  "Events": []}'
    make.records.documents[text] = text
    make.records.polls.insert(
        1, replace(make.records.polls[0], document=text, version="2017-11-01")
    )
    assert check(make.records) == []
