"""One instance cannot slow its neighbours: an address gets a few turns in each millisecond."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from fairwarning.metadata import connection as connections
from fairwarning.metadata import requests
from fairwarning.metadata import server as servers
from fairwarning.metadata.fair_share import TURNS_PER_ROUND, FairShare
from fairwarning.metadata.http_parser import ReceivedRequest, RequestParser
from fairwarning.metadata.settings import PIECE_BYTES_MAX, WAITING_BYTES_MAX
from tests.metadata.connection.test_unusual_http import H2C, VERSIONS, approval, is_started
from tests.metadata.rig import PATH, Rig, request
from tests.metadata.test_polls_held import hold
from tests.support.patience import HANG_S

NOWHERE = request("/nowhere")
TURNS_MAX = 2 * TURNS_PER_ROUND
"""In one round of the loop: one of the turns may end in it, and another begin."""


class Rounds:
    """Counts the rounds of the running event loop."""

    def __init__(self) -> None:
        self.number = 0
        self._is_on = True
        self._tick()

    def _tick(self) -> None:
        self.number += 1
        if self._is_on:
            asyncio.get_running_loop().call_soon(self._tick)

    def stop(self) -> None:
        self._is_on = False


@pytest.fixture
async def rounds() -> AsyncIterator[Rounds]:
    found = Rounds()
    yield found
    found.stop()


async def test_requests_are_taken_one_at_a_time_whatever_the_connections(
    rig: Rig, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: Counter[int] = Counter()
    read = requests.parse_request

    def count(*arguments: object) -> object:
        taken[rounds.number] += 1
        return read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(connections, "parse_request", count)
    clients = [await rig.connect() for _ in range(8)]
    for client in clients:
        client.writer.write(NOWHERE * 15)
    for client in clients:
        assert [(await client.receive()).status for _ in range(15)] == [404] * 15
    assert taken.total() == 120
    assert max(taken.values()) <= TURNS_MAX


async def test_connections_are_made_one_at_a_time(
    rig: Rig, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Counter[int] = Counter()

    class Counted(connections.Connection):
        def __init__(self, *arguments: object, **named: object) -> None:
            made[rounds.number] += 1
            super().__init__(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(servers, "Connection", Counted)
    assert rig.server is not None
    rig.server._listeners[0]._accepts = 64
    clients = []
    for _ in range(20):
        client = socket.create_connection(rig.address, source_address=("127.0.1.10", 0))
        client.sendall(NOWHERE)
        client.setblocking(False)
        clients.append(client)
    loop = asyncio.get_running_loop()
    for client in clients:
        assert (await loop.sock_recv(client, 4096)).startswith(b"HTTP/1.1 404")
        client.close()
    assert made.total() == 20
    assert max(made.values()) <= TURNS_MAX


async def test_a_flood_of_offers_of_another_protocol_is_answered_in_order(rig: Rig) -> None:
    """Each was parsed together with all that followed it, and again for each that followed."""
    client = await rig.connect()
    pair = request("/nowhere", headers=H2C) + request(VERSIONS, headers=H2C)
    client.writer.write(pair * 600)
    statuses = [(await client.receive()).status for _ in range(1200)]
    assert statuses == [404, 200] * 600


async def test_what_is_sent_behind_a_held_poll_waits_and_is_bounded(rig: Rig) -> None:
    client = await hold(rig)
    client.writer.write(request("/nowhere", headers={"Padding": "x" * 4_000}) * 500)
    await rig.ask(source="127.0.1.13")
    assert rig.server is not None
    readers = [each._parser for each in rig.connections]
    read_at_once = 256 * 1024
    assert all(each.waiting <= WAITING_BYTES_MAX + read_at_once for each in readers if each)
    await rig.schedule()
    assert (await client.receive()).incarnation == 2
    for _ in range(500):
        assert (await client.receive()).status == 404


async def test_a_body_in_chunks_of_a_byte_is_whole(rig: Rig) -> None:
    id = await rig.schedule()
    head = {"Metadata": "true", "Transfer-Encoding": "chunked"}
    body = approval(id) + b"\r\n\r\n" * 5_000
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    client = await rig.connect()
    await client.send(request(PATH, method="POST", headers=head) + chunks + b"0\r\n\r\n" + NOWHERE)
    assert [(await client.receive()).status for _ in range(2)] == [200, 404]
    assert await is_started(rig, id)


def taken(data: bytes, size: int) -> Iterator[ReceivedRequest | None]:
    """What each take of a reader gives that gets the data in pieces of this size."""
    reader = RequestParser(lambda: None)
    for at in range(0, len(data), size):
        reader.add(data[at : at + size])
        while waiting := reader.waiting:
            yield reader.take()
            assert 0 < waiting - reader.waiting <= PIECE_BYTES_MAX
    assert reader.is_empty


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100, 4_096, 100_000])
def test_a_parser_finds_the_same_requests_however_they_are_cut(size: int) -> None:
    body = b"\r\n\r\n" + NOWHERE
    chunked = {"Transfer-Encoding": "chunked"}
    sent = [
        NOWHERE,
        request(PATH, method="POST", body=body),
        request(PATH, method="POST", headers=chunked) + b"8\r\n\r\n\r\nab\r\n\r\n0\r\nA: b\r\n\r\n",
        b"\r\n\r\n" + request(PATH, headers=H2C),
        request(PATH, method="POST", headers={**H2C, "Content-Length": "4"}) + b"\r\n\r\n",
        request(PATH, method="POST", headers={**H2C, **chunked}) + b"0\r\n\r\n",
        request(PATH, method="POST", body=b"x" * 60_000),
        NOWHERE,
    ]
    found = [each for each in taken(b"".join(sent), size) if each is not None]
    assert [each.head.method for each in found] == [
        "GET",
        "POST",
        "POST",
        "GET",
        *["POST"] * 3,
        "GET",
    ]
    assert [each.body for each in found] == [
        b"", body, b"\r\n\r\nab\r\n", b"", b"\r\n\r\n", b"", b"x" * 60_000, b"",
    ]  # fmt: skip


async def test_everyone_who_waits_comes_in_turn() -> None:
    turns = FairShare()
    order: list[str] = []
    names = ["a1", "a2", "a3", "a4", "a5", "b1", "a6", "a7", "a8", "a9"]

    def go(name: str) -> None:
        order.append(name)
        if name == "a5":
            turns.run("a", lambda: go("a10"))

    for name in names:
        turns.run(name[0], partial(go, name))
    assert order == ["a1", "a2", "a3", "a4", "b1"]
    turns._begin_round()
    assert order[5:] == ["a5", "a6", "a7", "a8"]
    await turns.wait("c")
    await turns.wait("a")
    assert order[9:] == ["a9", "a10"]
    async with asyncio.timeout(HANG_S):
        while turns._is_timed or turns._waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
