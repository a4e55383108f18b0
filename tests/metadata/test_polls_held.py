"""Long-polls: held until the document changes, or their time is up."""

import asyncio

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import Approve, Declare, Operate
from fairwarning.core.model import InstanceName, OperationKind, instance_actor
from tests.metadata.rig import ME, Client, Rig, request
from tests.support.patience import HANG_S

WAIT = "/metadata/scheduledevents?api-version=2020-07-01&wait="


async def hold(rig: Rig, source: str = "127.0.1.10", wait: str = "300") -> Client:
    """A client that waits, as far as the server is concerned, when this returns."""
    tag = (await rig.ask(source=source)).headers["etag"]
    client = await rig.connect(source)
    await client.send(request(WAIT + wait, headers={"Metadata": "true", "If-None-Match": tag}))
    views = rig.engine._views
    assert views is not None
    member = views.by_address(source)
    assert member is not None
    before = len(member.view.listeners or ())
    async with asyncio.timeout(HANG_S):
        while len(member.view.listeners or ()) == before:  # noqa: ASYNC110
            await asyncio.sleep(0)
    return client


async def test_a_change_answers_everybody_who_waits(rig: Rig) -> None:
    clients = [await hold(rig, f"127.0.1.{10 + n % 4}") for n in range(12)]
    await rig.schedule("web-0")
    for client in clients:
        response = await client.receive()
        assert (response.status, response.incarnation) == (200, 2)


async def test_other_scopes_wait_on(rig: Rig) -> None:
    client = await hold(rig, "127.0.2.10")
    await rig.schedule("web-0")
    await rig.schedule("workers_0")
    assert (await client.receive()).incarnation == 2


async def test_time_up_is_not_modified(rig: Rig) -> None:
    client = await hold(rig, wait="1")
    response = await client.receive()
    assert (response.status, response.body) == (304, b"")
    await client.send(request())
    assert (await client.receive()).status == 200


async def test_without_a_matching_tag_there_is_no_wait(rig: Rig) -> None:
    assert (await rig.ask(WAIT + "300")).status == 200
    headers = {"Metadata": "true", "If-None-Match": "0"}
    assert (await rig.ask(WAIT + "300", headers=headers)).status == 200


@pytest.mark.parametrize("wait", ["-1", "x", "", "301", "1.5", "9" * 400, "٣"])
async def test_a_bad_wait_is_refused(rig: Rig, wait: str) -> None:
    from urllib.parse import quote

    assert (await rig.ask(WAIT + quote(wait))).status == 400


async def test_what_is_sent_while_waiting_is_answered_afterwards(rig: Rig) -> None:
    client = await hold(rig)
    await client.send(request("/metadata/versions"))
    await rig.schedule("web-0")
    assert (await client.receive()).incarnation == 2
    assert "apiVersions" in (await client.receive()).json()


async def test_a_client_that_goes_away_is_forgotten(rig: Rig) -> None:
    client = await hold(rig)
    views = rig.engine._views
    assert views is not None
    member = views.by_address("127.0.1.10")
    assert member is not None
    await client.close()
    async with asyncio.timeout(HANG_S):
        while member.view.listeners:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await rig.schedule("web-0")


async def test_an_instance_deleted_while_it_waits_gets_no_document(rig: Rig) -> None:
    client = await hold(rig, "127.0.2.10")
    delete = Operate(
        event_id=rig.engine.new_id(),
        kind=OperationKind.DELETE,
        instance=InstanceName("workers_0"),
    )
    await rig.submit(rig.workers, delete)
    assert (await client.receive()).incarnation == 2
    client = await hold(rig, "127.0.2.10")
    by = instance_actor(InstanceName("workers_0"))
    await rig.engine.submit(rig.workers.id, Approve(event_id=delete.event_id, by=by), by=ME)
    assert (await client.receive()).incarnation == 3
    client = await hold(rig, "127.0.2.10")
    await rig.clock.advance(60_000)
    assert (await client.receive()).status == 404


async def test_who_waits_when_the_server_stops_is_told_to_come_again() -> None:
    rig = Rig()
    await rig.start()
    client = await hold(rig)
    assert rig.server is not None
    await rig.server.stop()
    response = await client.receive()
    assert (response.status, response.headers["connection"]) == (503, "close")
    await client.close()
    await rig.engine.stop()


async def test_who_waits_from_an_address_that_passes_on_is_not_told_of_its_old_scope(
    rig: Rig,
) -> None:
    client = await hold(rig)
    old, new = rig.web.roster, rig.workers.roster
    name = InstanceName("web-0")
    without = {**old.instances, name: replace(old.instances[name], addresses=())}
    await rig.submit(rig.web, Declare(roster=replace(old, instances=without)))
    response = await client.receive()
    assert response.status == 404, "for a moment the address is nobody's"
    first = InstanceName("workers_0")
    moved = replace(new.instances[first], addresses=("127.0.1.10",))
    given = {**new.instances, first: moved}
    await rig.submit(rig.workers, Declare(roster=replace(new, instances=given)))
    await rig.schedule("web-1")
    assert (await rig.ask()).events == []


async def test_who_waits_is_not_told_of_a_neighbour_who_moves(rig: Rig) -> None:
    client = await hold(rig)
    roster = rig.web.roster
    name = InstanceName("web-3")
    moved = {**roster.instances, name: replace(roster.instances[name], addresses=("127.0.1.33",))}
    await rig.submit(rig.web, Declare(roster=replace(roster, instances=moved)))
    await rig.schedule("web-1")
    assert (await client.receive()).incarnation == 2, "the first thing that he hears is news"


async def test_the_time_of_a_wait_that_was_answered_does_not_end_the_next_one(rig: Rig) -> None:
    client = await hold(rig, wait="1")
    await rig.schedule("web-0")
    tag = (await client.receive()).headers["etag"]
    clock_s = asyncio.get_running_loop().time
    began_s = clock_s()
    await client.send(request(WAIT + "2", headers={"Metadata": "true", "If-None-Match": tag}))
    assert (await client.receive()).status == 304
    assert clock_s() - began_s > 1.5
