"""Both clients against a real server that misbehaves on request."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

import pytest

from fairwarning.client import (
    AsyncScheduledEvents,
    Change,
    ChangeKind,
    EventsUnavailable,
    NotApproved,
    ScheduledEvents,
    Seen,
    connections,
    polling,
)
from fairwarning.client.changes import step
from fairwarning.client.connections import AsyncConnection, BlockingConnection
from fairwarning.client.http import Address, Broken, TimedOut
from fairwarning.client.polling import Request
from fairwarning.testing import Server
from tests.support.patience import HANG_S

pytestmark = pytest.mark.usefixtures("polls_often")


@pytest.fixture
def events(fairwarning: Server) -> Iterator[ScheduledEvents]:
    with ScheduledEvents(fairwarning.vm("web-0").url) as client:
        yield client


def test_get_approve_and_who_am_i(fairwarning: Server, events: ScheduledEvents) -> None:
    assert events.get().events == ()
    assert events.instance().name == "web-0"
    planned = fairwarning.schedule("Reboot", "web-0", description="New firmware.")
    (event,) = events.get().events
    assert (event.id, event.description, event.source) == (planned.id, "New firmware.", "Platform")
    assert event.time_left_s(fairwarning.now) == 15 * 60
    events.approve(event.id)
    assert fairwarning.event(event.id).phase == "started"


def test_an_approval_of_an_unknown_event_says_what_the_service_said(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    with pytest.raises(NotApproved, match="400"):
        events.approve("E3E70682-C209-4CAC-A29F-6FBED82C07CD")


def test_nobody_there(events: ScheduledEvents) -> None:
    with (
        ScheduledEvents("http://127.0.0.1:9") as nobody,
        pytest.raises(EventsUnavailable, match="cannot be reached"),
    ):
        nobody.get()
    with pytest.raises(ValueError, match="http://"):
        ScheduledEvents("https://x")


KINDS = [ChangeKind.SCHEDULED, ChangeKind.STARTED, ChangeKind.FINISHED]


def go_on(fairwarning: Server, change: Change) -> None:
    """What the world does once the watcher has heard of a change."""
    if change.kind is ChangeKind.SCHEDULED:
        fairwarning.approve(change.event.id)
    elif change.kind is ChangeKind.STARTED:
        fairwarning.advance(minutes=5)


def test_watch_tells_each_change_once(fairwarning: Server, events: ScheduledEvents) -> None:
    events.get()
    fairwarning.schedule("Reboot", "web-0")
    kinds = []
    for change in islice(events.watch(), 3):
        kinds.append(change.kind)
        go_on(fairwarning, change)
    assert kinds == KINDS


async def test_watch_in_an_event_loop(fairwarning: Server) -> None:
    async with AsyncScheduledEvents(fairwarning.vm("web-0").url) as events:
        await events.get()
        fairwarning.schedule("Reboot", "web-0")
        kinds = []
        async for change in events.watch():
            kinds.append(change.kind)
            go_on(fairwarning, change)
            if len(kinds) == 3:
                break
        assert kinds == KINDS
        assert (await events.instance()).name == "web-0"


def test_time_is_the_services_own(fairwarning: Server, events: ScheduledEvents) -> None:
    """A VM whose clock is wrong must not take an event for overdue."""
    events.get()
    fairwarning.schedule("Reboot", "web-0")
    (event,) = events.get().events
    assert 14 * 60 < event.time_left_s(events.now()) <= 15 * 60


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("status", {"status": 500}),
        ("status", {"status": 503}),
        ("status", {"status": 410}),
        ("empty", {}),
        ("reset", {}),
        ("slow", {"delay": 0.3}),
        ("slow-body", {"delay": 0.3}),
        ("iso-dates", {}),
        ("dotnet-dates", {}),
        ("unknown-type", {}),
        ("unknown-fields", {}),
        ("incarnation-reset", {}),
        ("stale", {}),
        ("duplicate", {}),
    ],
)
def test_an_event_is_seen_once_through_every_fault(
    fairwarning: Server, events: ScheduledEvents, kind: str, more: dict[str, float]
) -> None:
    events.get()
    fairwarning.fault(kind, "web-0", count=2, **more)  # type: ignore[arg-type]
    planned = fairwarning.schedule("Preempt", "web-0")
    changes = events.watch()
    found = next(each for each in changes if each.event.id == planned.id)
    assert found.kind is ChangeKind.SCHEDULED
    assert found.event.not_before is not None
    fairwarning.advance(minutes=2)
    ended = next(each for each in changes if each.event.id == planned.id)
    assert ended.kind in (ChangeKind.FINISHED, ChangeKind.CANCELLED)


def hear(events: ScheduledEvents, documents: int) -> list[str]:
    """What a watch would tell of the next documents, without its pauses."""
    kinds = []
    for _ in range(documents):
        events.seen, changes = step(events.seen, events.get(), events.now())
        kinds += [each.kind.value for each in changes]
    return kinds


def test_a_cache_that_strikes_at_random_ends_nothing(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    events.get()
    fairwarning.fault("stale", "web-0", probability=0.7)
    planned = fairwarning.schedule("Reboot", "web-0")
    assert hear(events, 300) == ["scheduled"]
    fairwarning.approve(planned.id)
    assert hear(events, 300) == ["started"]
    fairwarning.advance(minutes=5)
    assert hear(events, 300) == ["finished"]


def test_a_service_that_says_nothing_when_there_is_nothing_is_understood(
    fairwarning: Server, events: ScheduledEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "BACKOFF_S_MAX", 0.001)
    events.get()
    planned = fairwarning.schedule("Reboot", "web-0")
    watching = events.watch()
    assert next(watching).kind is ChangeKind.SCHEDULED
    fairwarning.approve(planned.id)
    assert next(watching).kind is ChangeKind.STARTED
    fairwarning.fault("empty", "web-0")
    fairwarning.advance(minutes=5)
    assert next(watching).kind is ChangeKind.FINISHED


def test_a_watcher_that_restarts_hears_nothing_twice(fairwarning: Server) -> None:
    url = fairwarning.vm("web-0").url
    with ScheduledEvents(url) as first:
        first.get()
        planned = fairwarning.schedule("Reboot", "web-0")
        assert next(first.watch()).kind is ChangeKind.SCHEDULED
        seen = first.seen
    fairwarning.cancel(planned)
    with ScheduledEvents(url, seen=seen) as second:
        found = next(second.watch())
    assert (found.kind, found.event.id) == (ChangeKind.CANCELLED, planned.id)


def test_what_get_showed_is_still_news_to_the_watch(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    events.get()
    watching = events.watch()
    first = fairwarning.schedule("Reboot", "web-0")
    assert next(watching).event.id == first.id
    second = fairwarning.schedule("Freeze", "web-0")
    assert {each.id for each in events.get().events} == {first.id, second.id}
    assert next(watching).event.id == second.id


def test_a_watch_that_ends_in_the_middle_of_a_document_is_continued_by_the_next(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    events.get()
    planned = {fairwarning.schedule("Reboot", name).id for name in ("web-0", "web-1")}
    heard = {next(events.watch()).event.id for _ in planned}
    assert heard == planned


def test_in_doubt_the_service_is_not_asked_to_hold_its_answer() -> None:
    """It would say that nothing has changed, and the doubt would last."""
    with ScheduledEvents("http://127.0.0.1:9") as events:
        events.poll_state = polling.PollState(tag='"5-1"', has_answered=True)
        assert "wait=" in events._next_poll().target
        events.seen = Seen(incarnation=5, doubts=1)
        request = events._next_poll()
        assert "wait=" not in request.target
        assert "If-None-Match" not in request.headers


async def test_get_asks_no_faster_than_a_service_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure refuses more than five questions a second, and there are more versions than that."""
    pauses: list[float] = []
    answers = [polling.Response(status=400)] * 3
    answers.append(polling.Response(status=200, body=b'{"DocumentIncarnation":1,"Events":[]}'))
    blocking, looping = iter(answers), iter(answers)

    async def answer(_: Request) -> polling.Response:
        return next(looping)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with AsyncScheduledEvents("http://127.0.0.1:9") as events:
        monkeypatch.setattr(events._side_connection, "ask", answer)
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "sleep", pause)
            assert (await events.get()).incarnation == 1
    with ScheduledEvents("http://127.0.0.1:9") as waiting:
        monkeypatch.setattr(waiting._side_connection, "ask", lambda _: next(blocking))
        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", pauses.append)
            assert waiting.get().incarnation == 1
    assert pauses == [polling.ASK_AGAIN_S] * 6


async def test_an_answer_to_who_we_are_that_cannot_be_read_counts_as_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nonsense = polling.Response(status=200, body=b'{"compute":{}}')

    async def answer(_: Request) -> polling.Response:
        return nonsense

    async with AsyncScheduledEvents("http://127.0.0.1:9") as events:
        monkeypatch.setattr(events._side_connection, "ask", answer)
        with pytest.raises(EventsUnavailable):
            await events.instance()
    with ScheduledEvents("http://127.0.0.1:9") as waiting:
        monkeypatch.setattr(waiting._side_connection, "ask", lambda _: nonsense)
        with pytest.raises(EventsUnavailable):
            waiting.instance()


async def test_questions_of_several_tasks_do_not_get_each_others_answers(
    fairwarning: Server,
) -> None:
    async with AsyncScheduledEvents(fairwarning.vm("web-0").url) as events:
        async with asyncio.TaskGroup() as tasks:
            instances = [tasks.create_task(events.instance()) for _ in range(5)]
            documents = [tasks.create_task(events.get()) for _ in range(5)]
        assert {each.result().name for each in instances} == {"web-0"}
        assert {each.result().incarnation for each in documents} == {1}


@pytest.fixture
def mute() -> Iterator[tuple[str, list[socket.socket]]]:
    """A service that takes connections and never says a word."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(listening.accept()[0])

        thread = threading.Thread(target=take)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", taken
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for each in taken:
        each.close()


async def test_silence_is_not_asked_for_twice(mute: tuple[str, list[socket.socket]]) -> None:
    """A held poll on a dead connection costs its time once, or an eviction would be missed."""
    url, taken = mute
    request = Request(method="GET", target="/", headers={}, timeout_s=0.2)
    blocking, streamed = BlockingConnection(Address(url)), AsyncConnection(Address(url))
    blocking._socket = socket.create_connection((blocking.address.host, blocking.address.port))
    with pytest.raises(TimedOut, match="did not answer"):
        blocking.ask(request)
    await streamed._connect()
    with pytest.raises(TimedOut, match="did not answer"):
        await streamed.ask(request)
    assert len(taken) == 2


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def link_url(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def nobody_connects(listening: socket.socket) -> bool:
    listening.setblocking(False)
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return True
    return False


QUESTION = Request(method="POST", target="/", headers={}, timeout_s=1)


def test_a_question_ends_when_another_thread_closes_the_link(listening: socket.socket) -> None:
    """It is not asked again: an approval would be sent twice."""
    link = BlockingConnection(Address(link_url(listening)))
    link._connect(HANG_S)
    served = listening.accept()[0]
    ended: list[Exception] = []

    def ask() -> None:
        try:
            link.ask(QUESTION)
        except Broken as problem:
            ended.append(problem)

    asking = threading.Thread(target=ask)
    with served:
        asking.start()
        served.recv(1)
        link.close()
        asking.join(HANG_S)
    assert len(ended) == 1
    assert nobody_connects(listening)


async def test_the_same_of_a_task(listening: socket.socket) -> None:
    link = AsyncConnection(Address(link_url(listening)))
    await link._connect()
    with listening.accept()[0] as served:
        asking = asyncio.create_task(link.ask(QUESTION))
        await asyncio.to_thread(served.recv, 1)
        await link.close()
        with pytest.raises(Broken):
            await asking
    assert nobody_connects(listening)


class Dripping:
    """A connection on which a byte of the answer comes each second, for ever."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._left_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def settimeout(self, seconds: float) -> None:
        self._left_s = seconds

    def recv(self, _: int) -> bytes:
        self.now_s += min(self._left_s, 1.0)
        if self._left_s < 1.0:
            raise TimeoutError
        assert self.now_s < 100, "it would never give up"
        return b"x"

    def sendall(self, _: bytes) -> None: ...
    def shutdown(self, _: int) -> None: ...
    def close(self) -> None: ...


def test_an_answer_that_comes_drop_by_drop_has_no_more_time_than_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link, dripping = BlockingConnection(Address("http://127.0.0.1:9")), Dripping()
    monkeypatch.setattr(connections, "time", dripping)
    link._socket = dripping  # type: ignore[assignment]
    request = Request(method="GET", target="/", headers={}, timeout_s=20)
    with pytest.raises(TimedOut):
        link.ask(request)
    assert dripping.now_s == pytest.approx(20, abs=0.1)


@pytest.mark.fairwarning(fleet={"vm": [{"name": "old"}]})
def test_proxies_in_the_environment_are_not_asked(
    fairwarning: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ScheduledEvents(fairwarning.vm("old").url) as events:
        assert events.get().incarnation == 1


def test_a_second_passes_even_if_the_service_says_the_same_one(
    fairwarning: Server, events: ScheduledEvents
) -> None:
    """The virtual clock stands still; whoever waits for a second must not wait for ever."""
    events.get()
    first = events.now()
    events.get()
    assert events.now() > first
    fairwarning.advance(hours=1)
    events.get()
    assert events.now() - first > timedelta(minutes=59)
