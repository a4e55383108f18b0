"""Each change is told once, whatever the service shows in between."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.client.changes import (
    CONFIRMATIONS,
    CONFIRMATIONS_MAX,
    CONFIRMATIONS_OF_A_CANCELLATION,
    CONFIRMATIONS_OF_AN_END,
    GAP_FACTOR,
    OVER_KEPT_MAX,
    Seen,
    approved,
    step,
    step_without_document,
)
from fairwarning.client.changes import with_change as fold
from fairwarning.client.model import Change, ChangeKind, Document, Event, Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENT = Event(
    id="E1",
    type="Reboot",
    status=Status.SCHEDULED,
    resources=("web-0",),
    not_before=NOW + timedelta(minutes=15),
)
STARTED = replace(EVENT, status=Status.STARTED, not_before=None)


def told(seen: Seen, *documents: Document, now: datetime = NOW) -> tuple[Seen, list[str]]:
    words = []
    for document in documents:
        seen, changes = step(seen, document, now)
        words += [f"{each.kind} {each.event.id}" for each in changes]
    return seen, words


def doc(incarnation: int, *events: Event) -> Document:
    return Document(incarnation=incarnation, events=events)


def test_the_whole_life_of_an_event() -> None:
    _, words = told(Seen(), doc(1), doc(2, EVENT), doc(2, EVENT), doc(3, STARTED), doc(4))
    assert words == ["scheduled E1", "started E1", "finished E1"]


def test_the_time_left_ends_at_nothing() -> None:
    assert EVENT.time_left_s(NOW) == 15 * 60
    assert EVENT.time_left_s(NOW + timedelta(minutes=16)) == 0
    assert STARTED.time_left_s(NOW) == 0


def test_gone_before_its_time_is_cancelled_and_not_certain() -> None:
    seen, _ = told(Seen(), doc(1, EVENT))
    _, changes = step(seen, doc(2), NOW)
    assert changes == [Change(kind=ChangeKind.CANCELLED, event=EVENT, is_certain=False)]


def test_gone_after_we_approved_or_after_its_time_is_finished() -> None:
    seen, _ = told(Seen(), doc(1, EVENT))
    assert told(approved(seen, "e1"), doc(2))[1] == ["finished E1"]
    assert told(seen, doc(2), now=NOW + timedelta(minutes=16))[1] == ["finished E1"]


def test_among_a_thousand_events_that_are_over_the_last_one_is_not_told_of_again() -> None:
    old = tuple(f"OLD{number}" for number in range(OVER_KEPT_MAX))
    seen, _ = told(Seen(over=old), doc(1, EVENT), doc(2))
    assert len(seen.over) == OVER_KEPT_MAX
    assert told(seen, doc(1, EVENT), doc(1, STARTED))[1] == []


def test_seen_first_when_it_has_started() -> None:
    assert told(Seen(), doc(1, STARTED), doc(2))[1] == ["started E1", "finished E1"]


def test_a_stale_document_ends_nothing_and_nothing_is_told_twice() -> None:
    other = replace(EVENT, id="E2")
    _, words = told(Seen(), doc(5, EVENT), doc(4), doc(6, EVENT, other), doc(5, EVENT), doc(7))
    assert words == ["scheduled E1", "scheduled E2", "cancelled E1", "cancelled E2"]


def test_a_stale_document_does_not_take_a_start_back() -> None:
    _, words = told(Seen(), doc(5, EVENT), doc(6, STARTED), doc(5, EVENT), doc(6, STARTED), doc(7))
    assert words == ["scheduled E1", "started E1", "finished E1"]


def test_an_old_document_does_not_take_a_postponement_back() -> None:
    later = replace(EVENT, not_before=NOW + timedelta(hours=1))
    seen, _ = told(Seen(), doc(5, EVENT), doc(6, later), doc(5, EVENT), doc(5, EVENT))
    assert seen.events == {"E1": later}


@pytest.mark.parametrize(
    ("event", "times", "end"),
    [
        (EVENT, CONFIRMATIONS_OF_A_CANCELLATION, "cancelled E1"),
        (STARTED, CONFIRMATIONS_OF_AN_END, "finished E1"),
        (replace(EVENT, not_before=NOW), CONFIRMATIONS_OF_AN_END, "finished E1"),
    ],
)
def test_a_service_that_counts_anew_is_believed_after_a_while(
    event: Event, times: int, end: str
) -> None:
    seen, _ = told(Seen(), doc(50, event))
    seen, words = told(seen, *[doc(1)] * (times - 1))
    assert words == []
    assert seen.is_in_doubt
    seen, words = told(seen, doc(1))
    assert words == [end]
    assert not seen.is_in_doubt
    assert told(seen, doc(2, replace(EVENT, id="E3")), doc(3))[1] == [
        "scheduled E3",
        "cancelled E3",
    ]


def test_a_service_that_counts_anew_without_events_is_believed_after_a_few_documents() -> None:
    seen, _ = told(Seen(), doc(50), *[doc(1)] * CONFIRMATIONS)
    assert told(seen, doc(2, EVENT), doc(3))[1] == ["scheduled E1", "cancelled E1"]


def test_old_documents_that_contradict_each_other_are_no_service_that_counts_anew() -> None:
    seen, _ = told(Seen(), doc(50), *[doc(3), doc(1)] * CONFIRMATIONS)
    assert seen.is_in_doubt
    assert seen.incarnation == 50


def test_ends_in_a_service_that_began_anew_are_told_before_its_numbers_catch_up() -> None:
    new = [doc(1), doc(2, EVENT)]
    assert told(Seen(), doc(10), *new, *[doc(3)] * (CONFIRMATIONS - 1))[1] == ["scheduled E1"]
    words = told(Seen(), doc(10), *new, *[doc(3)] * CONFIRMATIONS)[1]
    assert words == ["scheduled E1", "cancelled E1"]


def test_a_service_that_is_believed_to_have_begun_anew_is_believed_in_all_that_it_says() -> None:
    later = replace(EVENT, not_before=NOW + timedelta(hours=3))
    seen, _ = told(Seen(), doc(10, EVENT), *[doc(1, later)] * CONFIRMATIONS)
    assert seen.events["E1"] == later


def test_an_end_that_two_services_agree_on_is_believed_although_they_count_apart() -> None:
    seen, _ = told(Seen(), doc(50, STARTED))
    assert told(seen, *[doc(3), doc(1)] * (CONFIRMATIONS_OF_AN_END // 2))[1] == ["finished E1"]


def test_a_cache_from_before_the_service_counted_anew_does_not_end_what_came_since() -> None:
    cached = [doc(50)] * (CONFIRMATIONS_OF_A_CANCELLATION - 1)
    assert told(Seen(), doc(50), doc(1, EVENT), *cached, doc(1, EVENT))[1] == ["scheduled E1"]


def test_a_service_that_does_not_count_is_believed_after_a_few_documents() -> None:
    seen, _ = told(Seen(), doc(1, EVENT))
    assert told(seen, *[doc(1)] * (CONFIRMATIONS - 1))[1] == []
    assert told(seen, *[doc(1)] * CONFIRMATIONS)[1] == ["cancelled E1"]


def test_a_service_that_was_believed_wrongly_needs_ten_times_as_long() -> None:
    gap = [doc(1)] * CONFIRMATIONS_OF_A_CANCELLATION
    seen, words = told(Seen(), doc(2, EVENT), *gap, doc(2, EVENT))
    assert words == ["scheduled E1", "cancelled E1", "scheduled E1"]
    times = GAP_FACTOR * CONFIRMATIONS_OF_AN_END
    seen, words = told(seen, *[doc(1)] * (times - 1), doc(2, EVENT))
    assert words == []
    assert told(seen, *[doc(1)] * CONFIRMATIONS_MAX)[1] == ["cancelled E1"], "not kept for ever"


def test_the_longer_old_documents_come_the_longer_they_must_come_to_be_believed() -> None:
    seen, _ = told(Seen(), doc(2, STARTED), *[doc(1)] * 50, doc(2, STARTED))
    assert told(seen, *[doc(1)] * (50 * GAP_FACTOR - 1))[1] == []
    assert told(seen, *[doc(1)] * (50 * GAP_FACTOR))[1] == ["finished E1"]


def test_what_an_older_library_has_seen_is_still_understood() -> None:
    seen = Seen(incarnation=7, events={"E1": EVENT}, doubts=2, doubted=doc(6))
    assert told(seen, doc(6), doc(7, EVENT), doc(8))[1] == ["cancelled E1"]
    ended = Seen(incarnation=6, presumed={"E1": 7})
    assert told(ended, doc(6, EVENT), doc(7, EVENT))[1] == ["scheduled E1"]


def test_answers_of_nothing_end_what_may_be_over_and_only_after_long() -> None:
    other = replace(EVENT, id="E2")
    seen, _ = told(Seen(), doc(2, STARTED, other))
    kinds: list[str] = []
    for _ in range(CONFIRMATIONS_OF_AN_END):
        assert not kinds
        seen, changes = step_without_document(seen, NOW)
        kinds = [f"{each.kind} {each.event.id}" for each in changes]
    assert kinds == ["finished E1"]
    assert seen.events.keys() == {"E2"}
    assert told(seen, doc(2, STARTED, other))[1] == ["started E1"], "it was not over"


def test_a_document_in_between_takes_the_word_of_answers_of_nothing() -> None:
    seen, _ = told(Seen(), doc(2, STARTED))
    for _ in range(CONFIRMATIONS_OF_AN_END - 1):
        seen, _ = step_without_document(seen, NOW)
    seen, _ = told(seen, doc(2, STARTED))
    assert step_without_document(seen, NOW)[1] == []


def test_what_is_new_in_a_doubtful_document_is_told_at_once() -> None:
    """An eviction gives 30 seconds; a restarted service must not cost three of them."""
    seen, _ = told(Seen(), doc(50))
    assert told(seen, doc(1, EVENT))[1] == ["scheduled E1"]


def test_an_event_that_is_over_does_not_come_back() -> None:
    _, words = told(Seen(), doc(1, STARTED), doc(2), doc(3, EVENT), doc(4, STARTED), doc(5))
    assert words == ["started E1", "finished E1"]


def test_an_event_that_a_long_lie_ended_is_told_of_again() -> None:
    """To hear of it twice is better than to be rebooted unprepared."""
    seen, words = told(Seen(), doc(7, EVENT), *[doc(6)] * CONFIRMATIONS_OF_A_CANCELLATION)
    assert words == ["scheduled E1", "cancelled E1"]
    seen, words = told(seen, doc(6, EVENT))
    assert words == []
    seen, words = told(seen, doc(7, EVENT), doc(8, STARTED), doc(9), doc(9, EVENT))
    assert words == ["scheduled E1", "started E1", "finished E1"]


def test_an_event_that_old_documents_showed_and_ended_is_told_of_again() -> None:
    """The service may have begun anew, and the document that ended it be of the life before."""
    seen, words = told(Seen(), doc(4), doc(2, EVENT), *[doc(3)] * CONFIRMATIONS)
    assert words == ["scheduled E1", "cancelled E1"]
    assert told(seen, doc(1, EVENT))[1] == []
    assert told(seen, doc(2, EVENT))[1] == ["scheduled E1"]


def test_what_was_told_of_one_by_one_adds_up_to_the_document() -> None:
    """So whoever keeps `seen` after each change loses none to a crash in between."""
    seen, _ = told(Seen(), doc(1, EVENT))
    other = replace(EVENT, id="E2")
    after, changes = step(seen, doc(2, other), NOW)
    assert [each.event.id for each in changes] == ["E2", "E1"]
    halfway = fold(seen, changes[0], after)
    assert told(halfway, doc(2, other))[1] == ["cancelled E1"]
    assert fold(halfway, changes[1], after).events == after.events
    assert fold(halfway, changes[1], after).over == after.over


def test_what_is_kept_in_the_middle_of_a_document_knows_old_documents_too() -> None:
    seen, _ = told(Seen(), doc(1))
    after, (change,) = step(seen, doc(2, EVENT), NOW)
    halfway = fold(seen, change, after)
    assert told(halfway, *[doc(1)] * CONFIRMATIONS_OF_AN_END, doc(2, EVENT))[1] == []


def test_a_doubtful_end_is_kept_as_one() -> None:
    """So that the event is told of again if it was not over, also by the next process."""
    seen, _ = told(Seen(), doc(2, STARTED), *[doc(1)] * (CONFIRMATIONS_OF_AN_END - 1))
    after, (change,) = step(seen, doc(1), NOW)
    assert change.kind is ChangeKind.FINISHED
    assert told(fold(seen, change, after), doc(2, STARTED))[1] == ["started E1"]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 6),
            st.lists(st.tuples(st.sampled_from("ABC"), st.booleans()), max_size=3),
        ),
        max_size=30,
    )
)
def test_each_change_at_most_once_and_in_order(
    story: list[tuple[int, list[tuple[str, bool]]]],
) -> None:
    documents = [
        doc(
            number,
            *(
                replace(STARTED if is_started else EVENT, id=id)
                for id, is_started in dict(events).items()
            ),
        )
        for number, events in story
    ]
    seen, ends = Seen(), {"finished", "cancelled"}
    kinds: dict[str, list[str]] = {id: [] for id in "ABC"}
    for document in documents:
        may_return = seen.presumed
        seen, changes = step(seen, document, NOW)
        for change in changes:
            so_far = kinds[change.event.id]
            if so_far and so_far[-1] in ends and change.event.id in may_return:
                so_far.clear()
            so_far.append(change.kind)
    for so_far in kinds.values():
        ranks = [["scheduled", "started", "finished", "cancelled"].index(kind) for kind in so_far]
        assert ranks == sorted(set(ranks))
        assert not ends <= set(so_far)


def reboot(id: str, state: int) -> tuple[Event, ...]:
    """Not yet, scheduled, started or over."""
    return ((), (replace(EVENT, id=id),), (replace(STARTED, id=id),), ())[state]


@st.composite
def histories(draw: st.DrawFn) -> list[Document]:
    """What one service showed, one document after another."""
    states = dict.fromkeys("ABC", 0)
    documents = [doc(1)]
    for number in range(2, draw(st.integers(2, 9)) + 1):
        for id in draw(st.sets(st.sampled_from("ABC"), min_size=1)):
            states[id] = min(3, states[id] + draw(st.integers(1, 3)))
        shown = [each for id, state in states.items() for each in reboot(id, state)]
        documents.append(doc(number, *shown))
    return documents


@given(history=histories(), data=st.data())
def test_old_documents_in_between_change_nothing(
    history: list[Document], data: st.DataObject
) -> None:
    """But that events from before the watch began may be told of as well, and again after an end:
    only old documents showed them, and to hear of one twice is better than to miss it."""
    begun = data.draw(st.integers(0, len(history) - 1))
    delivered: list[Document] = []
    for number in range(begun, len(history)):
        delivered += [history[number]] * data.draw(st.integers(1, 3))
        for old in data.draw(st.lists(st.integers(0, number), max_size=2)):
            times = data.draw(st.integers(1, (CONFIRMATIONS_OF_AN_END - 1) // 2))
            delivered += [history[old]] * times
        delivered.append(history[number])
    delivered += history[-1:] * CONFIRMATIONS_MAX
    _, expected = told(Seen(), *history[begun:])
    _, words = told(Seen(), *delivered)
    known = {each.id for document in history[begun:] for each in document.events}
    assert [each for each in words if each.split()[1] in known] == expected
    for id in set("ABC") - known:
        own = [each for each in words if each.endswith(id)]
        assert all(one != other for one, other in pairwise(own))


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.7, 0.9, 0.95])
@pytest.mark.parametrize("seed", range(5))
def test_a_cache_that_strikes_at_random_for_half_an_hour(probability: float, seed: int) -> None:
    dice = Random(seed)
    seen, words = Seen(), []
    for second in range(1800):
        state = 1 if second < 900 else 2 if second < 1200 else 3
        current = doc(state + 1, *reboot("E1", state))
        served = doc(1) if second and dice.random() < probability else current
        seen, changes = step(seen, served, NOW + timedelta(seconds=second))
        words += [f"{each.kind} {each.event.id}" for each in changes]
    assert words == ["scheduled E1", "started E1", "finished E1"]
