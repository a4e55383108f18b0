"""Recognising a poll by its bytes changes nothing but the time that it takes.

Each random request goes out three times: whole (parsed and remembered), whole again (if it
was a poll, known now) and cut in two (parsed for certain). All answers must be the same.
"""

import re
from random import Random

import pytest

from fairwarning.core.commands import Cancel, Operate
from fairwarning.core.model import InstanceName, OperationKind
from fairwarning.metadata.settings import REMEMBERED_POLLS_MAX, EndpointRules
from tests.metadata.rig import PATH, Client, Response, Rig, request

VARYING = re.compile(rb"(Date: [^\r]*|x-ms-request-id: [^\r]*)")
SOURCES = ["127.0.1.10", "127.0.1.13", "127.0.2.10", "127.0.9.9"]
PATHS = [
    "/metadata/scheduledevents",
    "/vm/web-1/metadata/scheduledevents",
    "/vm/nobody/metadata/scheduledevents",
    "/metadata/scheduledEvents",
    "/metadata/nothing",
]
VERSIONS = ["2017-03-01", "2019-01-01", "2020-07-01", "2020-07-01", "2018-01-01", "latest", ""]
HEADERS = [
    {"Metadata": "true"},
    {"metadata": "True", "User-Agent": "x"},
    {"Metadata": "true", "If-None-Match": "TAG"},
    {"Metadata": "true", "If-None-Match": "0"},
    {"Metadata": "true", "X-Forwarded-For": "10.0.0.1"},
    {"Metadata": "false"},
    {},
]


def plain(response: Response) -> bytes:
    return VARYING.sub(b"", response.raw)


async def change(rig: Rig, dice: Random) -> None:
    scope = await rig.store.read(rig.web.id)
    if scope.unfinished and dice.random() < 0.5:
        await rig.submit(rig.web, Cancel(event_id=scope.unfinished[0].id))
    elif not scope.unfinished:
        await rig.schedule()


def draw(dice: Random, tag: str, *, closes: bool) -> bytes:
    path = f"{dice.choice(PATHS)}?api-version={dice.choice(VERSIONS)}"
    headers = {name: value.replace("TAG", tag) for name, value in dice.choice(HEADERS).items()}
    if closes:
        headers["Connection"] = "close"
    return request(path, headers=headers)


async def ask_whole(rig: Rig, source: str, sent: bytes) -> Response:
    client = await rig.connect(source)
    await client.send(sent)
    response = await client.receive()
    await client.close()
    return response


async def ask_in_pieces(rig: Rig, source: str, sent: bytes) -> Response:
    client = await rig.connect(source)
    await client.send(sent[:7])
    probe = await rig.ask("/metadata/versions", source=source)
    assert probe.status in (200, 404)
    await client.send(sent[7:])
    response = await client.receive()
    await client.close()
    return response


async def test_both_paths_answer_the_same_to_the_byte(rig: Rig) -> None:
    dice = Random(1)
    remembered = 0
    for _ in range(400):
        await change(rig, dice)
        source = dice.choice(SOURCES)
        tag = (await rig.ask(source=source)).headers.get("etag", "none")
        sent = draw(dice, tag, closes=dice.random() < 0.5)
        answers = {plain(await ask_whole(rig, source, sent)) for _ in range(2)}
        answers.add(plain(await ask_in_pieces(rig, source, sent)))
        assert len(answers) == 1, sent
        remembered += sent in _memory(rig)
    assert remembered > 50


def _memory(rig: Rig) -> dict[bytes, object]:
    assert rig.server is not None
    return rig.server._state.known_polls.by_bytes  # type: ignore[return-value]


async def test_kept_connections_answer_the_same_too(rig: Rig) -> None:
    dice = Random(2)
    clients = {source: await rig.connect(source) for source in SOURCES}
    for _ in range(300):
        await change(rig, dice)
        source = dice.choice(SOURCES)
        tag = (await rig.ask(source=source)).headers.get("etag", "none")
        sent = draw(dice, tag, closes=False)
        client: Client = clients[source]
        answers = set()
        # Parsed, then known to the server, then the connection's own usual, then parsed again.
        for pieces in ([sent], [sent], [sent], [sent[:9], sent[9:]]):
            for piece in pieces:
                await client.send(piece)
            answers.add(plain(await client.receive()))
        assert len(answers) == 1, sent


@pytest.mark.usefixtures("seconds")
async def test_a_known_poll_is_still_limited() -> None:
    rig = Rig(EndpointRules(requests_per_second_max=1))
    await rig.start()
    for closes in (False, True):
        headers = {"Metadata": "true"} | ({"Connection": "close"} if closes else {})
        sent = request(PATH, headers=headers)
        statuses = [(await ask_whole(rig, "127.0.1.10", sent)).status for _ in range(4)]
        assert statuses == [429 if closes else 200, 429, 429, 429]
    await rig.stop()


@pytest.mark.usefixtures("seconds")
async def test_the_usual_poll_of_a_connection_is_still_limited() -> None:
    rig = Rig(EndpointRules(requests_per_second_max=4))
    await rig.start()
    client = await rig.connect()
    statuses = [(await ask_again(client)).status for _ in range(6)]
    await rig.stop()
    assert statuses == [200] * 4 + [429] * 2


async def test_a_connection_with_its_usual_poll_loses_its_document_with_its_address(
    rig: Rig,
) -> None:
    client = await rig.connect("127.0.2.10")
    assert [(await ask_again(client)).status for _ in range(4)] == [200] * 4
    delete = OperationKind.DELETE
    gone = Operate(instance=InstanceName("workers_0"), kind=delete, event_id=rig.engine.new_id())
    await rig.submit(rig.workers, gone)
    await rig.clock.advance(3600_000)
    assert [(await ask_again(client)).status for _ in range(2)] == [404] * 2


async def test_the_usual_poll_of_a_scope_that_fell_asleep_wakes_it(rig: Rig) -> None:
    client = await rig.connect()
    for _ in range(4):
        await ask_again(client)
    await rig.schedule("web-0")
    await rig.clock.advance(26 * 3600_000)
    assert not (await rig.store.read(rig.web.id)).is_activated
    assert (await ask_again(client)).incarnation == 1
    assert (await rig.store.read(rig.web.id)).is_activated


async def ask_again(client: Client) -> Response:
    await client.send(request(PATH))
    return await client.receive()


async def test_a_known_poll_from_elsewhere_gets_no_foreign_document(rig: Rig) -> None:
    await rig.schedule("web-0")
    sent = request(PATH, headers={"Metadata": "true", "Connection": "close"})
    assert len((await ask_whole(rig, "127.0.1.10", sent)).events) == 1
    assert sent in _memory(rig)
    assert (await ask_whole(rig, "127.0.2.10", sent)).events == []
    assert (await ask_whole(rig, "127.0.9.9", sent)).status == 404


async def test_a_known_poll_of_a_scope_that_fell_asleep_wakes_it(rig: Rig) -> None:
    sent = request(PATH, headers={"Metadata": "true", "Connection": "close"})
    for _ in range(2):
        await ask_whole(rig, "127.0.1.10", sent)
    await rig.schedule("web-0")
    await rig.clock.advance(26 * 3600_000)
    assert not (await rig.store.read(rig.web.id)).is_activated
    assert (await ask_whole(rig, "127.0.1.10", sent)).incarnation == 1
    assert (await rig.store.read(rig.web.id)).is_activated


async def test_memory_for_polls_is_bounded(rig: Rig) -> None:
    client = await rig.connect()
    for number in range(REMEMBERED_POLLS_MAX + 50):
        await client.send(request(PATH, headers={"Metadata": "true", "X": str(number)}))
        await client.receive()
    assert len(_memory(rig)) <= REMEMBERED_POLLS_MAX
    long = request(PATH, headers={"Metadata": "true", "X": "x" * 4000})
    await client.send(long)
    assert (await client.receive()).status == 200
    assert long not in _memory(rig)
