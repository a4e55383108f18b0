"""A client whose threads or tasks watch, ask and approve at the same time."""

import socket
import threading
from collections.abc import Callable, Iterator
from types import TracebackType

import pytest

from fairwarning.client import (
    AsyncScheduledEvents,
    ChangeKind,
    EventsUnavailable,
    NotApproved,
    ScheduledEvents,
    Seen,
    changes,
)
from fairwarning.client.model import Change
from fairwarning.client.polling import PollState, Request, Response
from fairwarning.testing import Server

pytestmark = pytest.mark.usefixtures("polls_often")

UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def events(fairwarning: Server) -> Iterator[ScheduledEvents]:
    with ScheduledEvents(fairwarning.vm("web-0").url) as client:
        yield client


class WatchedLock:
    """A lock that says when somebody has to wait for it."""

    def __init__(self, is_waited_for: threading.Event) -> None:
        self._lock = threading.Lock()
        self._is_waited_for = is_waited_for

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._is_waited_for.set()
            self._lock.acquire()

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._lock.release()


class Meanwhile:
    """Runs something in another thread at a chosen instant of this one, and goes on when it has
    ended or waits for this one."""

    def __init__(self, client: ScheduledEvents, work: Callable[[], object]) -> None:
        self._goes_on = threading.Event()
        self._work = work
        self._thread = threading.Thread(target=self._run)
        client._lock = WatchedLock(self._goes_on)  # type: ignore[assignment]

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._goes_on.set()

    def happen(self) -> None:
        if self._thread.ident is None:
            self._thread.start()
            self._goes_on.wait()

    def end(self) -> None:
        self._thread.join()


def test_an_approval_is_not_forgotten_while_another_thread_watches(
    fairwarning: Server, events: ScheduledEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    events.get()
    watching = events.watch()
    first = fairwarning.schedule("Reboot", "web-0")
    assert next(watching).event.id == first.id
    approving = Meanwhile(events, lambda: events.approve(first.id))
    told = changes.with_change

    def told_slowly(seen: Seen, change: Change, after: Seen) -> Seen:
        """The watch has read `seen` and has not written it yet."""
        approving.happen()
        return told(seen, change, after)

    monkeypatch.setattr(changes, "with_change", told_slowly)
    fairwarning.schedule("Freeze", "web-0")
    next(watching)
    approving.end()
    assert first.id in events.seen.approved


def test_an_approval_while_a_change_is_with_the_caller_is_kept_for_an_event_that_get_showed(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    """The watch has not told of it, and perhaps never will: it may be gone before."""
    events.get()
    watching = events.watch()
    fairwarning.schedule("Freeze", "web-0")
    next(watching)
    second = fairwarning.schedule("Reboot", "web-0")
    events.approve(second.id)
    assert next(watching).event.id == second.id
    assert second.id in events.seen.approved


def test_an_approval_of_an_event_that_is_over_is_not_kept_for_ever(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    events.get()
    watching = events.watch()
    over = fairwarning.schedule("Reboot", "web-0")
    next(watching)
    fairwarning.cancel(over)
    assert next(watching).kind is ChangeKind.CANCELLED
    events.approve(over.id)
    fairwarning.schedule("Freeze", "web-0")
    next(watching)
    assert events.seen.approved == frozenset()


def test_an_approval_of_an_event_that_was_over_long_before_is_not_kept_for_ever_either(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    events.get()
    watching = events.watch()
    over = fairwarning.schedule("Reboot", "web-0")
    next(watching)
    fairwarning.cancel(over)
    next(watching)
    fairwarning.schedule("Freeze", "web-0")
    next(watching)
    events.approve(over.id)
    fairwarning.schedule("Redeploy", "web-1")
    next(watching)
    assert events.seen.approved == frozenset()


def test_a_question_of_another_thread_does_not_hide_its_answer_from_the_watch(
    fairwarning: Server, events: ScheduledEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch that took the tag of that answer for its own would never be shown it."""
    events.get()
    watching = events.watch()
    fairwarning.schedule("Freeze", "web-0")
    next(watching)
    own_tag = events.poll_state.tag
    polls: list[Request] = []
    polling = Meanwhile(events, lambda: polls.append(events._next_poll()))
    with_single_request = PollState.with_single_request

    def besides_slowly(watch: PollState, asked: PollState) -> PollState:
        polling.happen()
        return with_single_request(watch, asked)

    monkeypatch.setattr(PollState, "with_single_request", besides_slowly)
    fairwarning.schedule("Reboot", "web-0")
    events.get()
    polling.end()
    assert [each.headers.get("If-None-Match") for each in polls] == [own_tag]


def test_an_end_that_is_seen_before_the_answer_to_the_approval_is_no_cancellation(
    fairwarning: Server, events: ScheduledEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    events.get()
    watching = events.watch()
    planned = fairwarning.schedule("Reboot", "web-0")
    assert next(watching).kind is ChangeKind.SCHEDULED
    ask = events._side_connection.ask
    heard: list[Change] = []

    def ask_with_a_late_answer(request: Request) -> Response:
        response = ask(request)
        fairwarning.advance(minutes=5)
        heard.append(next(watching))
        return response

    monkeypatch.setattr(events._side_connection, "ask", ask_with_a_late_answer)
    events.approve(planned.id)
    assert [each.kind for each in heard] == [ChangeKind.FINISHED]
    assert events.seen.approved == frozenset()


async def test_the_same_in_an_event_loop(
    fairwarning: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncScheduledEvents(fairwarning.vm("web-0").url) as events:
        await events.get()
        watching = events.watch()
        planned = fairwarning.schedule("Reboot", "web-0")
        assert (await anext(watching)).kind is ChangeKind.SCHEDULED
        ask = events._side_connection.ask
        heard: list[Change] = []

        async def ask_with_a_late_answer(request: Request) -> Response:
            response = await ask(request)
            fairwarning.advance(minutes=5)
            heard.append(await anext(watching))
            return response

        monkeypatch.setattr(events._side_connection, "ask", ask_with_a_late_answer)
        await events.approve(planned.id)
        assert [each.kind for each in heard] == [ChangeKind.FINISHED]


def test_an_approval_counts_whose_answer_was_lost_and_none_that_was_refused(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    """The service may have heard the one; it said that it did not take the other."""
    events.get()
    watching = events.watch()
    planned = fairwarning.schedule("Reboot", "web-0")
    next(watching)
    with pytest.raises(NotApproved):
        events.approve(planned.id, UNKNOWN)
    assert events.seen.approved == frozenset()
    with fairwarning.fault("reset", "web-0", on="approve"), pytest.raises(EventsUnavailable):
        events.approve(planned.id)
    assert events.seen.approved == {planned.id}
    other = fairwarning.schedule("Freeze", "web-0")
    with fairwarning.fault("status", "web-0", on="approve", status=500):  # noqa: SIM117
        with pytest.raises(NotApproved):
            events.approve(other.id)
    assert events.seen.approved == {planned.id, other.id}, "it broke, perhaps after it was taken"
    with pytest.raises(NotApproved):
        events.approve(planned.id, UNKNOWN)
    assert events.seen.approved == {planned.id, other.id}, "it was approved before"


def test_a_client_that_is_closed_by_another_thread_asks_the_question_no_more(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    """The connection is gone in the middle of a question. The next one makes another."""
    events.get()
    assert events._side_connection._socket is not None
    connection: socket.socket = events._side_connection._socket

    class Closing:
        def __getattr__(self, name: str) -> object:
            return getattr(connection, name)

        def sendall(self, data: bytes) -> None:
            connection.sendall(data)
            events.close()

    events._side_connection._socket = Closing()  # type: ignore[assignment]
    with pytest.raises(EventsUnavailable):
        events.get()
    assert events.get().events == ()
