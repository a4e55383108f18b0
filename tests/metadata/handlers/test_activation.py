"""The first call, the idle day, and the number that begins again."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import Approve, Command, Declare, Operate
from fairwarning.core.instants import HOUR_MS, MINUTE_MS
from fairwarning.core.model import InstanceName, OperationKind, ScopeId
from fairwarning.core.transitions import Activated
from fairwarning.metadata.settings import EndpointRules
from tests.metadata.rig import PATH, Client, Rig, request
from tests.support.patience import HANG_S


async def test_a_scope_is_activated_by_its_first_request(rig: Rig) -> None:
    assert not (await rig.store.read(rig.web.id)).is_activated
    await rig.schedule("web-0")
    first = await rig.ask()
    assert (first.incarnation, len(first.events)) == (1, 1)
    assert (await rig.store.read(rig.web.id)).is_activated
    assert not (await rig.store.read(rig.workers.id)).is_activated


async def test_the_first_call_can_take_its_time_and_others_wait_with_it() -> None:
    rig = Rig(EndpointRules(activation_delay_s=60))
    await rig.start()
    clients = [await rig.connect(source) for source in ("127.0.1.10", "127.0.1.11")]
    for client in clients:
        await client.send(request())
    answers = [asyncio.create_task(client.receive()) for client in clients]
    other = await rig.connect("127.0.1.12")
    await other.send(request("/metadata/versions"))
    assert (await other.receive()).status == 200
    assert not any(answer.done() for answer in answers)
    await rig.clock.advance(59_999)
    assert not (await rig.store.read(rig.web.id)).is_activated
    await rig.clock.advance(1)
    assert [(await answer).incarnation for answer in answers] == [1, 1]
    assert (await rig.ask()).incarnation == 1
    await rig.stop()


DRAINED = "/metadata/fairwarning/drained"


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PATH, None),
        (f"{PATH}&wait=300", None),
        (PATH, b'{"StartRequests": []}'),
        (DRAINED, b'{"EventId": "x"}'),
    ],
    ids=["poll", "long-poll", "approval", "drained"],
)
async def test_a_client_that_leaves_meanwhile_waits_no_more(
    resets: bool, path: str, body: bytes | None
) -> None:
    rig = Rig(EndpointRules(activation_delay_s=60))
    await rig.start()
    client = await activating(rig, path, body)
    client.leave(resets=resets)
    await rig.until_alone()
    assert rig.server is not None
    async with asyncio.timeout(HANG_S):
        while rig.server._state._tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    await rig.clock.advance(24 * HOUR_MS)
    assert not (await rig.store.read(rig.web.id)).is_activated
    view = rig.engine.views._views[rig.web.id]
    assert not view.is_asked
    assert not view.listeners
    await rig.stop()


@pytest.mark.parametrize("delay_s", [0, 60])
async def test_an_approval_that_is_being_stored_does_not_end_with_its_client(
    delay_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(EndpointRules(activation_delay_s=delay_s))
    await rig.start()
    id = await rig.schedule("web-0")
    reached, gate = asyncio.Event(), asyncio.Event()
    submit = rig.engine.submit

    async def slowly(scope_id: ScopeId, command: Command, **more: Any) -> Any:
        if isinstance(command, Approve):
            reached.set()
            await gate.wait()
        return await submit(scope_id, command, **more)

    monkeypatch.setattr(rig.engine, "submit", slowly)
    client = await rig.connect()
    body = json.dumps({"StartRequests": [{"EventId": id}]}).encode()
    await client.send(request(PATH, method="POST", body=body))
    if delay_s:
        await waiting(rig, 1)
        await rig.clock.advance(delay_s * 1_000)
    async with asyncio.timeout(HANG_S):
        await reached.wait()
        client.leave(resets=True)
        await rig.until_alone()
        gate.set()
        assert rig.server is not None
        while rig.server._state._tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    _, event = await rig.store.find_event(id)
    assert event.is_approved
    await rig.stop()


async def test_those_who_stay_are_not_kept_waiting_longer_by_one_who_left() -> None:
    rig = Rig(EndpointRules(activation_delay_s=60))
    await rig.start()
    first = await activating(rig, PATH)
    await rig.clock.advance(20_000)
    second = await rig.connect("127.0.1.11")
    await second.send(request())
    await waiting(rig, 2)
    first.leave(resets=True)
    await waiting(rig, 1)
    await rig.clock.advance(40_000)
    assert (await second.receive()).incarnation == 1
    entries = await rig.store.journal(scope_id=rig.web.id, limit=10)
    assert [str(e.by) for e in entries if isinstance(e.transition, Activated)] == ["instance:web-1"]
    await rig.stop()


async def test_whoever_comes_after_all_have_left_begins_anew() -> None:
    rig = Rig(EndpointRules(activation_delay_s=60))
    await rig.start()
    first = await activating(rig, PATH)
    await rig.clock.advance(59_000)
    first.leave(resets=True)
    await rig.until_alone()
    second = await activating(rig, PATH)
    await rig.clock.advance(59_999)
    assert not (await rig.store.read(rig.web.id)).is_activated
    await rig.clock.advance(1)
    assert (await second.receive()).incarnation == 1
    await rig.stop()


async def test_a_client_that_leaves_a_quick_activation_does_not_wait_either(rig: Rig) -> None:
    """It closed its side before it could be held; nobody would notice its end for minutes."""
    client = await rig.connect()
    client.writer.write(
        request(f"{PATH}&wait=300", headers={"Metadata": "true", "If-None-Match": "*"})
    )
    client.writer.write_eof()
    assert await client.is_closed()
    assert not rig.engine.views._views[rig.web.id].listeners


async def activating(rig: Rig, path: str, body: bytes | None = None) -> Client:
    """A client that waits for an activation, as far as the server is concerned."""
    client = await rig.connect()
    asked = request(path) if body is None else request(path, method="POST", body=body)
    await client.send(asked)
    await waiting(rig, 1)
    return client


async def waiting(rig: Rig, number: int) -> None:
    assert rig.server is not None
    endpoint = rig.server._state.handlers
    async with asyncio.timeout(HANG_S):
        while [len(each.members) for each in endpoint._activating.values()] != [number]:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_whose_address_passes_on_meanwhile_is_not_answered_as_who_he_was() -> None:
    rig = Rig(EndpointRules(activation_delay_s=60))
    await rig.start()
    client = await rig.connect()
    await client.send(request() + request("/metadata/versions"))
    probe = await rig.connect("127.0.1.12")
    await probe.send(request("/metadata/versions"))
    await probe.receive()
    roster, name = rig.web.roster, InstanceName("web-0")
    without = {**roster.instances, name: replace(roster.instances[name], addresses=())}
    await rig.submit(rig.web, Declare(roster=replace(roster, instances=without)))
    await rig.clock.advance(60_000)
    assert (await client.receive()).status == 404
    assert (await client.receive()).status == 404, "its next request is answered too"
    await rig.stop()


async def test_polling_keeps_a_scope_awake_and_silence_ends_it(rig: Rig) -> None:
    await rig.ask()
    await rig.schedule("web-0")
    for _ in range(30):
        await rig.clock.advance(HOUR_MS)
        await rig.ask()
    assert (await rig.ask()).incarnation == 4
    await rig.clock.advance(24 * HOUR_MS)
    assert (await rig.store.read(rig.web.id)).is_activated
    await rig.clock.advance(20 * MINUTE_MS)
    assert not (await rig.store.read(rig.web.id)).is_activated
    assert (await rig.ask()).incarnation == 1


async def test_a_waiting_client_keeps_its_scope_awake(rig: Rig) -> None:
    tag = (await rig.ask()).headers["etag"]
    client = await rig.connect()
    waiting = {"Metadata": "true", "If-None-Match": tag}
    path = "/metadata/scheduledevents?api-version=2020-07-01&wait=300"
    await client.send(request(path, headers=waiting))
    probe = await rig.connect()
    await probe.send(request("/metadata/versions"))
    await probe.receive()
    await rig.clock.advance(48 * HOUR_MS)
    assert (await rig.store.read(rig.web.id)).is_activated


async def test_a_restart_of_an_unwatched_machine_needs_no_notice(rig: Rig) -> None:
    restart = Operate(
        event_id=rig.engine.new_id(), kind=OperationKind.RESTART, instance=InstanceName("web-0")
    )
    receipt = await rig.submit(rig.web, restart)
    assert receipt.scope.events[restart.event_id].started_ms is not None
    assert (await rig.ask()).events == []
