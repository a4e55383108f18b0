"""Silent connections end, and those whose client waits for us do not."""

import asyncio
import time

import pytest

from fairwarning.metadata.connection import Connection
from fairwarning.metadata.settings import KEEP_ALIVE_S, REQUEST_S_MAX, WAIT_S_MAX
from tests.metadata.rig import PATH, Client, Rig, request
from tests.metadata.test_polls_held import WAIT, hold
from tests.operator_api.rig import Block
from tests.support.patience import HANG_S

DRAINED = "/metadata/fairwarning/drained?EventId=unknown"
"""A request for which the store is read."""


async def only_connection(rig: Rig) -> Connection:
    """The server's side of the only connection that is open."""
    async with asyncio.timeout(HANG_S):
        while len(rig.connections) != 1:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    (found,) = rig.connections
    return found


async def answered(rig: Rig) -> tuple[Client, Connection]:
    client = await rig.connect()
    await client.send(request())
    assert (await client.receive()).status == 200
    return client, await only_connection(rig)


def is_open(connection: Connection) -> bool:
    return connection.transport is not None and not connection.transport.is_closing()


async def test_a_held_poll_outlives_every_sweep(rig: Rig) -> None:
    client = await hold(rig)
    connection = await only_connection(rig)
    for in_s in (0, KEEP_ALIVE_S + 1, WAIT_S_MAX, 10 * WAIT_S_MAX):
        connection.sweep(time.monotonic() + in_s)
        assert is_open(connection)
    await rig.schedule("web-0")
    assert (await client.receive()).incarnation == 2


async def test_after_its_answer_a_held_poll_has_the_time_of_any_other(rig: Rig) -> None:
    client = await hold(rig)
    connection = await only_connection(rig)
    await rig.schedule("web-0")
    await client.receive()
    now_s = time.monotonic()
    connection.sweep(now_s)
    connection.sweep(now_s + KEEP_ALIVE_S)
    assert is_open(connection)
    connection.sweep(now_s + KEEP_ALIVE_S + 0.1)
    assert await client.is_closed()


async def test_a_client_that_does_not_read_the_answer_it_waited_for_is_shown_out(rig: Rig) -> None:
    client = await hold(rig)
    connection = await only_connection(rig)
    connection.pause_writing()
    await rig.schedule("web-0")
    assert (await client.receive()).incarnation == 2
    now_s = time.monotonic()
    connection.sweep(now_s)
    connection.sweep(now_s + KEEP_ALIVE_S + 0.1)
    assert await client.is_closed()


async def test_an_approval_may_take_as_long_as_the_store_needs(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await rig.schedule("web-0")
    client, connection = await answered(rig)
    block = Block(monkeypatch, rig.store, "transact")
    body = b'{"StartRequests":[{"EventId":"%s"}]}' % id.encode()
    await client.send(request(PATH, method="POST", body=body))
    async with asyncio.timeout(HANG_S):
        await block.reached.wait()
    for in_s in (0, REQUEST_S_MAX + 1, KEEP_ALIVE_S + 1, 10 * KEEP_ALIVE_S):
        connection.sweep(time.monotonic() + in_s)
        assert is_open(connection)
    block.open()
    assert (await client.receive()).status == 200


async def test_the_time_of_a_request_that_came_too_early_begins_with_its_turn(rig: Rig) -> None:
    """It begins when the answer before it is sent, and is not that of a silent connection."""
    client = await hold(rig)
    connection = await only_connection(rig)
    await client.send(request()[:20])
    await rig.schedule("web-0")
    await client.receive()
    now_s = time.monotonic()
    connection.sweep(now_s)
    connection.sweep(now_s + REQUEST_S_MAX + 0.1)
    assert await client.is_closed()


async def test_a_client_that_has_closed_its_side_is_not_held(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store delays the request before the poll until the end of the client's bytes is known."""
    tag = (await rig.ask()).headers["etag"]
    client = await rig.connect()
    block = Block(monkeypatch, rig.store, "read")
    waiting = request(WAIT + "300", headers={"Metadata": "true", "If-None-Match": tag})
    await client.send(request(DRAINED) + waiting)
    async with asyncio.timeout(HANG_S):
        await block.reached.wait()
        client.writer.write_eof()
        connection = await only_connection(rig)
        while not connection._is_ended:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    block.open()
    assert (await client.receive()).status == 404
    assert await client.is_closed()
