"""The first call, the idle day, and the number that begins again."""

import asyncio

from msgspec.structs import replace

from fairwarning.core.commands import Declare, Operate
from fairwarning.core.instants import HOUR_MS, MINUTE_MS
from fairwarning.core.model import InstanceName, OperationKind
from fairwarning.metadata.limits import EndpointRules
from tests.metadata.rig import Rig, request


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


async def test_whose_address_passes_on_meanwhile_is_not_answered_as_who_he_was() -> None:
    rig = Rig(EndpointRules(activation_delay_s=60))
    await rig.start()
    client = await rig.connect()
    await client.send(request())
    probe = await rig.connect("127.0.1.12")
    await probe.send(request("/metadata/versions"))
    await probe.receive()
    roster, name = rig.web.roster, InstanceName("web-0")
    without = {**roster.instances, name: replace(roster.instances[name], addresses=())}
    await rig.submit(rig.web, Declare(roster=replace(roster, instances=without)))
    await rig.clock.advance(60_000)
    assert (await client.receive()).status == 404
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
