"""Each change is told once, whatever the service shows in between."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fairwarning.client.changes import CONFIRMATIONS, Seen, approved, step
from fairwarning.client.changes import told as fold
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


def test_gone_before_its_time_is_cancelled_and_not_certain() -> None:
    seen, _ = told(Seen(), doc(1, EVENT))
    _, changes = step(seen, doc(2), NOW)
    assert changes == [Change(kind=ChangeKind.CANCELLED, event=EVENT, is_certain=False)]


def test_gone_after_we_approved_or_after_its_time_is_finished() -> None:
    seen, _ = told(Seen(), doc(1, EVENT))
    assert told(approved(seen, "e1"), doc(2))[1] == ["finished E1"]
    assert told(seen, doc(2), now=NOW + timedelta(minutes=16))[1] == ["finished E1"]


def test_seen_first_when_it_has_started() -> None:
    assert told(Seen(), doc(1, STARTED), doc(2))[1] == ["started E1", "finished E1"]


def test_a_stale_document_ends_nothing_and_nothing_is_told_twice() -> None:
    other = replace(EVENT, id="E2")
    _, words = told(Seen(), doc(5, EVENT), doc(4), doc(6, EVENT, other), doc(5, EVENT), doc(7))
    assert words == ["scheduled E1", "scheduled E2", "cancelled E1", "cancelled E2"]


def test_a_stale_document_does_not_take_a_start_back() -> None:
    _, words = told(Seen(), doc(5, EVENT), doc(6, STARTED), doc(5, EVENT), doc(6, STARTED), doc(7))
    assert words == ["scheduled E1", "started E1", "finished E1"]


def test_a_service_that_counts_anew_is_believed_after_a_few_documents() -> None:
    seen, _ = told(Seen(), doc(50, EVENT))
    seen, words = told(seen, *(doc(1) for _ in range(CONFIRMATIONS - 1)))
    assert words == []
    assert seen.is_in_doubt
    seen, words = told(seen, doc(1))
    assert words == ["cancelled E1"]
    assert not seen.is_in_doubt
    assert told(seen, doc(2, replace(EVENT, id="E3")))[1] == ["scheduled E3"]


def test_what_is_new_in_a_doubtful_document_is_told_at_once() -> None:
    """An eviction gives 30 seconds; a restarted service must not cost three of them."""
    seen, _ = told(Seen(), doc(50))
    assert told(seen, doc(1, EVENT))[1] == ["scheduled E1"]


def test_an_event_that_is_over_does_not_come_back() -> None:
    _, words = told(Seen(), doc(1, STARTED), doc(2), doc(3, EVENT), doc(4, STARTED), doc(5))
    assert words == ["started E1", "finished E1"]


def test_an_event_that_a_long_lie_ended_is_told_of_again() -> None:
    """To hear of it twice is better than to be rebooted unprepared."""
    seen, words = told(Seen(), doc(7, EVENT), *(doc(6) for _ in range(CONFIRMATIONS)))
    assert words == ["scheduled E1", "cancelled E1"]
    seen, words = told(seen, doc(6, EVENT))
    assert words == []
    seen, words = told(seen, doc(7, EVENT), doc(8, STARTED), doc(9), doc(9, EVENT))
    assert words == ["scheduled E1", "started E1", "finished E1"]


def test_what_was_told_of_one_by_one_adds_up_to_the_document() -> None:
    """So whoever keeps `seen` after each change loses none to a crash in between."""
    seen, _ = told(Seen(), doc(1, EVENT))
    other = replace(EVENT, id="E2")
    after, changes = step(seen, doc(2, other), NOW)
    assert [each.event.id for each in changes] == ["E2", "E1"]
    halfway = fold(seen, changes[0])
    assert told(halfway, doc(2, other))[1] == ["cancelled E1"]
    assert fold(halfway, changes[1]).events == after.events
    assert fold(halfway, changes[1]).over == after.over


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
