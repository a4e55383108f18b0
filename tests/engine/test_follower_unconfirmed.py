"""What a node has been told of is looked up until the journal shows it, or for a while."""

import pytest

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.core.transitions import Activated
from fairwarning.engine import follower
from fairwarning.engine.follower import LOOKS_MAX, UnconfirmedRevisions
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


def looks(unconfirmed: UnconfirmedRevisions, number: int = 20) -> list[ScopeId]:
    return [id for _ in range(number) for id in unconfirmed.overdue()]


def test_a_commit_that_the_journal_passes_over_is_noticed() -> None:
    unconfirmed = UnconfirmedRevisions()
    assert unconfirmed.may_expect(A, 2, T0)
    assert not unconfirmed.is_met_by(line(3))


def test_another_commit_in_its_place_is_noticed_whichever_is_heard_first() -> None:
    unconfirmed = UnconfirmedRevisions()
    assert unconfirmed.may_expect(A, 2, T0)
    assert not unconfirmed.is_met_by(line(2, T1))
    unconfirmed = UnconfirmedRevisions()
    assert unconfirmed.is_met_by(line(2, T1))
    assert not unconfirmed.may_expect(A, 2, T0)


def test_a_commit_whose_line_came_before_its_answer_is_not_waited_for() -> None:
    unconfirmed = UnconfirmedRevisions()
    assert unconfirmed.is_met_by(line(2))
    assert unconfirmed.may_expect(A, 2, T0)
    assert unconfirmed.may_expect(A, 1, T0)
    assert looks(unconfirmed) == []
    assert unconfirmed.is_met_by(line(3))


def test_a_line_of_a_later_revision_is_proof_of_earlier_news() -> None:
    unconfirmed = UnconfirmedRevisions()
    unconfirmed.note(A, 2)
    assert unconfirmed.overdue() == []
    unconfirmed.note(A, 3)
    assert unconfirmed.is_met_by(line(2))
    assert looks(unconfirmed) == [A] * LOOKS_MAX, "the third is not proved yet"
    unconfirmed.note(A, 3)
    assert unconfirmed.is_met_by(line(3))
    assert looks(unconfirmed) == []


def test_of_much_news_all_is_looked_up_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "READ_AGAIN_MAX", 2)
    unconfirmed = UnconfirmedRevisions()
    ids = [ScopeId(str(number)) for number in range(5)]
    for id in ids:
        unconfirmed.note(id, 1)
    rounds = [unconfirmed.overdue() for _ in range(40)]
    assert max(map(len, rounds)) == 2
    found = [id for each in rounds for id in each]
    assert {id: found.count(id) for id in ids} == dict.fromkeys(ids, LOOKS_MAX)


def test_a_commit_of_our_own_is_concerned_by_a_step_back_however_long_ago_it_was() -> None:
    unconfirmed = UnconfirmedRevisions()
    assert unconfirmed.may_expect(A, 2, T0)
    looks(unconfirmed)
    assert unconfirmed.clear() == [A]
    assert unconfirmed.clear() == []


def test_a_commit_of_our_own_is_looked_up_before_other_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "READ_AGAIN_MAX", 1)
    unconfirmed = UnconfirmedRevisions()
    unconfirmed.note(ScopeId("other"), 1)
    assert unconfirmed.may_expect(A, 2, T0)
    assert [unconfirmed.overdue() for _ in range(2)] == [[], [A]]
