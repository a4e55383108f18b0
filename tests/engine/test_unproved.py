"""What a node has been told of is looked up until the journal shows it, or for a while."""

import pytest

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.core.transitions import Activated
from fairwarning.engine import follower
from fairwarning.engine.follower import LOOKS_MAX, Unproved
from fairwarning.engine.protocols import Entry, Position
from tests.core.builders import T0
from tests.engine.harness import ME

A = ScopeId("a")
T1 = Instant(T0 + 1)


def line(revision: int, at: Instant = T0) -> Entry:
    return Entry(
        position=Position(str(revision)),
        scope_id=A,
        revision=revision,
        at_ms=at,
        by=ME,
        why="",
        transition=Activated(at_ms=at),
    )


def looks(unproved: Unproved, number: int = 20) -> list[ScopeId]:
    return [id for _ in range(number) for id in unproved.overdue()]


def test_a_commit_that_the_journal_passes_over_is_noticed() -> None:
    unproved = Unproved()
    assert unproved.may_expect(A, 2, T0)
    assert not unproved.is_met_by(line(3))


def test_another_commit_in_its_place_is_noticed_whichever_is_heard_first() -> None:
    unproved = Unproved()
    assert unproved.may_expect(A, 2, T0)
    assert not unproved.is_met_by(line(2, T1))
    unproved = Unproved()
    assert unproved.is_met_by(line(2, T1))
    assert not unproved.may_expect(A, 2, T0)


def test_a_commit_whose_line_came_before_its_answer_is_not_waited_for() -> None:
    unproved = Unproved()
    assert unproved.is_met_by(line(2))
    assert unproved.may_expect(A, 2, T0)
    assert unproved.may_expect(A, 1, T0)
    assert looks(unproved) == []
    assert unproved.is_met_by(line(3))


def test_a_line_of_a_later_revision_is_proof_of_earlier_news() -> None:
    unproved = Unproved()
    unproved.note(A, 2)
    assert unproved.overdue() == []
    unproved.note(A, 3)
    assert unproved.is_met_by(line(2))
    assert looks(unproved) == [A] * LOOKS_MAX, "the third is not proved yet"
    unproved.note(A, 3)
    assert unproved.is_met_by(line(3))
    assert looks(unproved) == []


def test_of_much_news_all_is_looked_up_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "READ_AGAIN_MAX", 2)
    unproved = Unproved()
    ids = [ScopeId(str(number)) for number in range(5)]
    for id in ids:
        unproved.note(id, 1)
    rounds = [unproved.overdue() for _ in range(40)]
    assert max(map(len, rounds)) == 2
    found = [id for each in rounds for id in each]
    assert {id: found.count(id) for id in ids} == dict.fromkeys(ids, LOOKS_MAX)


def test_a_commit_of_our_own_is_concerned_by_a_step_back_however_long_ago_it_was() -> None:
    unproved = Unproved()
    assert unproved.may_expect(A, 2, T0)
    looks(unproved)
    assert unproved.clear() == [A]
    assert unproved.clear() == []


def test_a_commit_of_our_own_is_looked_up_before_other_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "READ_AGAIN_MAX", 1)
    unproved = Unproved()
    unproved.note(ScopeId("other"), 1)
    assert unproved.may_expect(A, 2, T0)
    assert [unproved.overdue() for _ in range(2)] == [[], [A]]
