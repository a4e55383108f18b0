"""Workers answer polls from their own copy, and send everything else to the engine."""

import asyncio
import json
import os

import pytest

from fairwarning import __version__
from fairwarning.core.commands import Activate
from fairwarning.core.faults import Fault, FaultKind
from fairwarning.core.model import Phase
from fairwarning.engine.active_faults import Faults, NoFaultsHere
from fairwarning.engine.clocks import SystemClock
from fairwarning.metadata.request_watchers import ObservedRequest
from fairwarning.metadata.settings import EndpointRules
from fairwarning.workers import remote_store
from fairwarning.workers.engine_server import WorkerMetrics
from fairwarning.workers.messages import Frame, Hello, Submission
from fairwarning.workers.worker import Worker
from tests.metadata.rig import ME, PATH, request
from tests.support.patience import HANG_S
from tests.workers.conftest import WorkerRig


def approval(id: str) -> bytes:
    return json.dumps({"StartRequests": [{"EventId": id}]}).encode()


async def test_a_change_is_shown_by_every_worker(rig: WorkerRig) -> None:
    one, two = await rig.add_worker(), await rig.add_worker()
    assert (await rig.ask(one)).incarnation == 1
    id = await rig.schedule()
    for worker in (one, two):
        await rig.until_shown(worker, id)
    await rig.cancel(id)
    for worker in (one, two):
        await rig.until_shown(worker, id, is_shown=False)


async def test_an_approval_at_a_worker_starts_the_event(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    id = await rig.schedule()
    await rig.until_shown(worker, id)
    assert (await rig.ask(worker, "POST", approval(id))).status == 200
    _, event = await rig.store.find_event(id)
    assert event.approvals
    assert event.phase is not Phase.SCHEDULED


async def test_whoever_approves_sees_at_the_same_worker_what_became_of_it(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    id = await rig.schedule()
    await rig.until_shown(worker, id)
    await rig.ask(worker, "POST", approval(id))
    events = (await rig.ask(worker)).events
    assert not events or events[0]["EventStatus"] == "Started"


async def test_a_bad_approval_gets_the_error_of_the_endpoint(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    response = await rig.ask(worker, "POST", approval("00000000-0000-0000-0000-000000000000"))
    assert response.status == 400
    assert b"nothing was approved" in response.body


async def test_instance_metadata_comes_through_the_engine(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
    assert (await rig.ask(worker, path=path)).body == b"web-0"


async def test_a_held_poll_at_a_worker_is_answered_by_a_change(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    tag = (await rig.ask(worker)).headers["etag"]
    held = asyncio.create_task(rig.ask(worker, path=f"{PATH}&wait=300", If_None_Match=tag))
    while not worker._views.member(rig.web.id, rig.web.roster.live[0].name).view.listeners:  # type: ignore[union-attr]  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    id = await rig.schedule()
    assert (await held).shows(id)


async def test_a_client_never_gets_an_older_document_at_another_worker(rig: WorkerRig) -> None:
    one, two = await rig.add_worker(), await rig.add_worker()
    await rig.ask(one)
    two._link._hear["shown"] = lambda _: None  # All news of this worker are lost.
    id = await rig.schedule()
    tag = (await rig.until_shown(one, id)).headers["etag"]
    assert (await rig.ask(two, If_None_Match=tag)).status == 304


async def test_without_the_engine_polls_are_answered_and_approvals_are_not(
    rig: WorkerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_store, "PATIENCE_S", 0.01)
    worker = await rig.add_worker()
    id = await rig.schedule()
    await rig.until_shown(worker, id)
    await rig.stop_engine()
    assert (await rig.ask(worker)).shows(id)
    response = await rig.ask(worker, "POST", approval(id))
    assert response.status == 503
    await rig.start_engine()


async def test_an_approval_waits_while_the_engine_is_restarted(
    rig: WorkerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_store, "PATIENCE_S", HANG_S)
    worker = await rig.add_worker()
    id = await rig.schedule()
    await rig.until_shown(worker, id)
    await rig.stop_engine()
    approving = asyncio.create_task(rig.ask(worker, "POST", approval(id)))
    await asyncio.sleep(0)
    await rig.start_engine()
    assert (await approving).status == 200
    _, event = await rig.store.find_event(id)
    assert event.approvals


async def test_an_approval_under_way_is_sent_again_when_the_connection_ends(
    rig: WorkerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_store, "PATIENCE_S", HANG_S)
    worker = await rig.add_worker()
    id = await rig.schedule()
    await rig.until_shown(worker, id)
    taken, goes_on = asyncio.Event(), asyncio.Event()

    call, answer = rig.server._answers["submit"]

    async def answer_no_approval(given: Submission) -> object:
        if given.kind == "Approve":
            taken.set()
            await goes_on.wait()
        return await answer(given)

    with monkeypatch.context() as patched:
        patched.setitem(rig.server._answers, "submit", (call, answer_no_approval))
        approving = asyncio.create_task(rig.ask(worker, "POST", approval(id)))
        await taken.wait()
    for each in list(rig.server._workers):
        each.cut_off()
    response = await approving
    goes_on.set()
    assert response.status == 200
    _, event = await rig.store.find_event(id)
    assert event.approvals


async def test_what_changed_while_a_worker_was_cut_off_is_shown_afterwards(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    await rig.ask(worker)
    await rig.server.stop()
    id = await rig.schedule()
    await rig.engine.stop()
    await rig.start_engine()
    await rig.until_shown(worker, id)


async def test_a_document_that_the_store_lost_gets_another_activation(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    await rig.ask(worker)
    before = await rig.store.read(rig.web.id)
    id = await rig.schedule()
    served = await rig.until_shown(worker, id)
    await rig.stop_engine()
    rig.store._scopes[rig.web.id] = before
    await rig.start_engine()
    shown = await rig.until_shown(worker, id, is_shown=False)
    assert shown.headers["etag"] != served.headers["etag"]
    other = await rig.schedule()
    shown = await rig.until_shown(worker, other)
    activation = (await rig.store.read(rig.web.id)).activated_ms
    assert activation != before.activated_ms


async def test_polls_at_workers_are_counted_by_the_engine(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    await rig.ask(worker, User_Agent="handler/1")
    worker._report(0, 0)
    member = rig.engine.views.member(rig.web.id, rig.web.roster.live[0].name)
    assert member is not None
    while not member.polls:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert member.polls == 1
    assert member.agent == "handler/1"
    assert rig.engine.views.is_asked(rig.web.id)
    assert rig.server.count_answers() == {"1": 1}


async def test_no_poll_is_left_out_of_a_report_in_parts(
    rig: WorkerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.workers.worker.POLLED_PER_REPORT_MAX", 1)
    worker = await rig.add_worker()
    for source in ("127.0.1.10", "127.0.1.11", "127.0.1.12"):
        await rig.ask(worker, source=source)
    worker._report(0, 0)
    async with asyncio.timeout(HANG_S):
        while (await rig.engine.views.summary()).polling < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_the_answers_of_a_worker_are_counted_once_over_connections_and_processes(
    rig: WorkerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await rig.add_worker()
    await rig.ask(first)
    await first.stop()
    rig.workers.remove(first)
    monkeypatch.setattr("fairwarning.workers.worker.os.getpid", lambda: 1)
    second = await rig.add_worker()
    for _ in range(2):
        await rig.ask(second)
    await counted(rig, second, {"1": 3})
    for each in list(rig.server._workers):
        each.cut_off()
    await second._link._is_connected.wait()
    await counted(rig, second, {"1": 3})
    await rig.ask(second)
    await counted(rig, second, {"1": 4})


async def counted(rig: WorkerRig, worker: Worker, expected: dict[str, int]) -> None:
    """Waits until a report of the worker has arrived, and checks the counts."""
    worker._report(0, 0)
    await worker._engine.check_past()  # Its answer comes after the report was taken.
    assert rig.server.count_answers() == expected


async def test_requests_to_workers_are_watched_only_while_somebody_looks(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    seen: list[ObservedRequest] = []
    rig.server.watch(seen.append, hears_refused=True)
    while not seen:
        await rig.ask(worker)
    assert seen[0].instance == "web-0"
    rig.server.unwatch(seen.append)
    while worker._is_watched:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    count = len(seen)
    await rig.ask(worker)
    await rig.engine.submit(rig.web.id, Activate(), by=ME)
    assert len(seen) == count


async def test_a_drained_worker_ends_each_connection_with_its_next_answer(rig: WorkerRig) -> None:
    worker = await rig.add_worker(EndpointRules())
    client = await rig.connect(worker)
    poll = request()
    for _ in range(3):
        await client.send(poll)
        assert (await client.receive()).headers.get("connection") != "close"
    draining = asyncio.create_task(worker._server.drain(HANG_S))
    while not worker._state.is_ending:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await client.send(poll)
    assert (await client.receive()).headers["connection"] == "close"
    assert await client.is_closed()
    await draining


async def test_a_drained_worker_answers_held_polls_at_once(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    client = await rig.connect(worker)
    await client.send(request())
    tag = (await client.receive()).headers["etag"]
    headers = {"Metadata": "true", "If-None-Match": tag}
    await client.send(request(f"{PATH}&wait=300", headers=headers))
    member = worker._views.member(rig.web.id, rig.web.roster.live[0].name)
    assert member is not None
    while not member.view.listeners:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    draining = asyncio.create_task(worker._server.drain(HANG_S))
    response = await client.receive()
    assert response.status == 304
    assert response.headers["connection"] == "close"
    await draining


async def test_no_fault_can_be_set_on_a_server_with_workers() -> None:
    faults = Faults(SystemClock())
    faults.are_elsewhere = True
    with pytest.raises(NoFaultsHere, match="without --workers"):
        faults.set(Fault(id="", kind=FaultKind.EMPTY))


async def test_each_new_process_of_a_worker_is_counted(rig: WorkerRig) -> None:
    worker = await rig.add_worker()
    assert shown_starts(rig) == {"1": 1}
    # A worker that was cut off calls again, but has not started again.
    for each in list(rig.server._workers):
        each.cut_off()
    async with asyncio.timeout(HANG_S):
        while not rig.server._workers:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await rig.until_shown(worker, await rig.schedule())
    assert shown_starts(rig) == {"1": 1}
    worker._link._hello = Hello(1, os.getpid() + 1, __version__)
    for each in list(rig.server._workers):
        each.cut_off()
    async with asyncio.timeout(HANG_S):
        while shown_starts(rig) != {"1": 2}:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def shown_starts(rig: WorkerRig) -> dict[str, float]:
    (family,) = WorkerMetrics(rig.server).collect()
    return {sample.labels["worker"]: sample.value for sample in family.samples}


async def test_a_worker_knows_how_old_the_documents_of_its_engine_are(
    rig: WorkerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.workers.engine_server.AGE_S", 0.001)
    worker = await rig.add_worker()
    monkeypatch.setattr(rig.engine, "documents_age_s", lambda: 100.0)
    while worker._age_s() < 100:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    monkeypatch.undo()
    while worker._age_s() >= 100:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await rig.stop_engine()
    age_s = worker._age_s()
    while worker._age_s() <= age_s:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await rig.start_engine()


async def test_documents_do_not_look_fresh_before_all_are_read_after_an_outage(
    rig: WorkerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.workers.engine_server.AGE_S", 0.001)
    worker = await rig.add_worker()
    heard, load, may_load = asyncio.Event(), worker._load, asyncio.Event()
    take_age = worker._link._hear["age"]

    def hear_age(frame: Frame) -> None:
        take_age(frame)
        heard.set()

    async def load_late() -> None:
        await may_load.wait()
        await load()

    await rig.stop_engine()
    monkeypatch.setitem(worker._link._hear, "age", hear_age)
    worker._link.on_connected = load_late
    before_s = worker._complete_s
    heard.clear()
    await rig.start_engine()
    await heard.wait()
    assert worker._complete_s == before_s
    may_load.set()
    async with asyncio.timeout(HANG_S):
        while worker._complete_s == before_s:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
