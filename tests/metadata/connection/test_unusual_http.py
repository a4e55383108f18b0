"""Requests that are legal but rare, and what must not come of them."""

import asyncio
import socket

import pytest

from fairwarning.core.commands import Operate
from fairwarning.core.model import (
    ANNOUNCED_TYPES,
    EventType,
    InstanceName,
    OperationKind,
    Phase,
)
from fairwarning.core.resources import Place, ScaleSet
from fairwarning.metadata import expiry, server
from fairwarning.metadata.settings import EndpointRules
from tests.metadata.rig import ME, PATH, Rig, request
from tests.metadata.test_polls_held import WAIT, hold
from tests.support.patience import HANG_S

VERSIONS = "/metadata/versions"
INSTANCE = "/metadata/instance?api-version=2021-02-01"
H2C = {
    "Metadata": "true",
    "Connection": "Upgrade, HTTP2-Settings",
    "HTTP2-Settings": "AAMAAABkAAQAoAAAAAIAAAAA",
    "Upgrade": "h2c",
}


def approval(id: str) -> bytes:
    return b'{"StartRequests":[{"EventId":"%s"}]}' % id.encode()


async def is_started(rig: Rig, id: str) -> bool:
    _, event = await rig.store.find_event(id)  # type: ignore[arg-type]
    return event.phase is Phase.STARTED


async def test_an_offer_of_http_2_is_ignored_and_the_body_is_read(rig: Rig) -> None:
    """Java's client makes it with every request."""
    id = await rig.schedule()
    client = await rig.connect()
    body = approval(id)
    head = request(PATH, method="POST", headers={**H2C, "Content-Length": str(len(body))})
    await client.send(head)
    await client.send(body)
    assert (await client.receive()).status == 200
    assert await is_started(rig, id)
    await client.send(request(PATH, headers=H2C) + request(VERSIONS))
    assert (await client.receive()).incarnation == 2
    assert "apiVersions" in (await client.receive()).json()


async def test_an_old_request_with_such_an_offer_need_not_name_its_host(rig: Rig) -> None:
    client = await rig.connect()
    await client.send(f"GET {PATH} HTTP/1.0\r\nMetadata: true\r\nUpgrade: x\r\n"
                      "Connection: Upgrade\r\n\r\n".encode())  # fmt: skip
    assert (await client.receive()).status == 200


async def test_the_words_of_several_connection_headers_count(rig: Rig) -> None:
    client = await rig.connect()
    upgrade = "Metadata: true\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nConnection: close\r\n\r\n"
    await client.send(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n{upgrade}".encode())
    answer = await client.receive()
    assert (answer.status, answer.headers.get("connection")) == (200, "close")


async def test_a_body_is_never_taken_for_a_request(rig: Rig) -> None:
    client = await rig.connect()
    smuggled = request(VERSIONS)
    headers = {**H2C, "Content-Length": str(len(smuggled))}
    await client.send(
        request(PATH, method="POST", headers=headers) + smuggled + request("/nowhere")
    )
    assert [(await client.receive()).status for _ in range(2)] == [400, 404]


async def test_answers_come_in_the_order_of_the_questions(rig: Rig) -> None:
    client = await rig.connect()
    await client.send(request(PATH))
    await client.receive()
    for path in (INSTANCE, PATH, PATH, "/nowhere", PATH, VERSIONS):
        client.writer.write(request(path))
        await asyncio.sleep(0)
    kinds = [sorted((await client.receive()).json())[0] for _ in range(6)]
    poll = "DocumentIncarnation"
    assert kinds == ["compute", poll, poll, "error", poll, "apiVersions"]


async def test_a_poller_that_does_not_read_costs_little(rig: Rig) -> None:
    await rig.schedule_described("web-0", EventType.FREEZE, "x" * 1024)
    await rig.ask()
    client = await rig.connect()
    raw = client.writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(20_000):
        client.writer.write(request(PATH))
    for _ in range(200):
        await asyncio.sleep(0)
    assert (await rig.ask(source="127.0.1.13")).status == 200
    assert rig.server is not None
    transports = [each.transport for each in rig.connections]
    waiting = [each.get_write_buffer_size() for each in transports if each is not None]
    assert max(waiting, default=0) < 1024 * 1024


async def test_what_waits_for_a_client_that_does_not_read_is_answered_when_it_reads(
    rig: Rig,
) -> None:
    client = await rig.connect()
    await client.send(request(PATH))
    assert (await client.receive()).status == 200
    assert rig.server is not None
    (connection,) = rig.connections
    # As the transport tells it when what it has to send is too much, and when it is sent.
    connection.pause_writing()
    connection.data_received(request(PATH) * 2)
    connection.resume_writing()
    assert [(await client.receive()).status for _ in range(2)] == [200, 200]


async def test_a_large_document_to_a_slow_reader_delays_nobody(rig: Rig) -> None:
    """The answer on a fresh connection must not be written to a socket that blocks."""
    long = "x" * 1024
    for number in range(4):
        for event_type in ANNOUNCED_TYPES:
            await rig.schedule_described(f"web-{number}", event_type, long)
    headers = {"Metadata": "true", "Connection": "close"}
    await rig.ask(headers=headers)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    slow.bind(("127.0.1.11", 0))
    slow.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(slow, rig.address)
    await loop.sock_sendall(slow, request(PATH, headers=headers))
    assert (await rig.ask(source="127.0.1.13", headers=headers)).status == 200
    said = b""
    async with asyncio.timeout(HANG_S):
        while piece := await loop.sock_recv(slow, 65_536):
            said += piece
    slow.close()
    assert said.endswith(b"]}")
    assert said.count(long.encode()) == 20


async def test_a_long_poll_outlives_the_limit_on_requests(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await hold(rig)
    other = await hold(rig, "127.0.1.11", wait="1")
    monkeypatch.setattr(expiry, "REQUEST_S_MAX", 0.05)
    await client.send(request(VERSIONS)[:20])
    assert (await other.receive()).status == 304
    await rig.schedule()
    assert (await client.receive()).incarnation == 2


async def test_two_approvals_and_then_the_end_of_the_input(rig: Rig) -> None:
    ids = [await rig.schedule("web-0"), await rig.schedule("web-2")]
    client = await rig.connect()
    await client.send(b"".join(request(PATH, method="POST", body=approval(id)) for id in ids))
    client.writer.write_eof()
    assert [(await client.receive()).status for _ in range(2)] == [200, 200]
    assert await client.is_closed()
    assert [await is_started(rig, id) for id in ids] == [True, True]


async def test_an_approval_before_rubbish_counts(rig: Rig) -> None:
    id = await rig.schedule()
    client = await rig.connect()
    await client.send(request(PATH, method="POST", body=approval(id)) + b"rubbish\r\n\r\n")
    assert [(await client.receive()).status for _ in range(2)] == [200, 400]
    assert await is_started(rig, id)


@pytest.mark.parametrize("cut", [30, 200, 20_000])
async def test_a_long_body_is_fine_however_it_is_cut(rig: Rig, cut: int) -> None:
    id = await rig.schedule()
    body = approval(id) + b" " * 30_000
    sent = request(PATH, method="POST", body=body)
    client = await rig.connect()
    await client.send(sent[:cut])
    await rig.ask(source="127.0.1.13")
    await client.send(sent[cut:])
    assert (await client.receive()).status == 200


async def test_a_trailer_is_no_header_and_has_a_limit(rig: Rig) -> None:
    id = await rig.schedule()
    body = approval(id)
    head = request(PATH, method="POST", headers={"Transfer-Encoding": "chunked"})
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(body), body)
    client = await rig.connect()
    await client.send(head + chunk + b"Metadata: true\r\n\r\n")
    assert (await client.receive()).status == 400
    assert not await is_started(rig, id)
    await client.send(head + chunk + b"X: ")
    client.writer.write(b"x" * 2_000_000)
    assert (await client.receive()).status == 413
    assert await client.is_closed()


async def test_leave_to_continue_is_given_only_where_it_is_needed(rig: Rig) -> None:
    headers = {"Metadata": "true", "Expect": "100-continue"}
    for _ in range(2):
        assert (await rig.ask(headers=headers)).status == 200
    too_long = {**headers, "Content-Length": "10000000"}
    assert (await rig.ask(method="POST", headers=too_long)).status == 413


async def test_a_whole_url_as_target(rig: Rig) -> None:
    assert (await rig.ask(f"http://169.254.169.254{PATH}")).status == 200


@pytest.mark.parametrize("wait", ["000000000999", "0" * 5000])
async def test_zeros_do_not_make_a_wait_longer(rig: Rig, wait: str) -> None:
    assert (await rig.ask(WAIT + wait)).status == 400


async def test_an_id_that_is_none_is_not_repeated(rig: Rig) -> None:
    for id in (b"\\ud800", b"x" * 60_000):
        body = b'{"StartRequests":[{"EventId":"%s"}]}' % id
        response = await rig.ask(method="POST", body=body)
        assert response.status == 400
        assert len(response.body) < 200


@pytest.mark.usefixtures("seconds")
async def test_a_known_long_poll_is_counted_once() -> None:
    rig = Rig(EndpointRules(requests_per_second_max=3))
    await rig.start()
    tag = (await rig.ask()).headers["etag"]
    headers = {"Metadata": "true", "If-None-Match": tag, "Connection": "close"}
    statuses = [(await rig.ask(WAIT + "1", headers=headers)).status for _ in range(3)]
    assert statuses == [304, 304, 429]
    await rig.stop()


async def test_who_waits_as_an_instance_that_is_deleted_unseen_is_told(rig: Rig) -> None:
    (scope,) = await rig.engine.declare(
        [ScaleSet(name="tmp", capacity=1, addresses=("127.0.3.10",), place=Place(test=True))],
        by=ME,
    )
    client = await hold(rig, "127.0.3.10")
    name = InstanceName("tmp_0")
    delete = Operate(event_id=rig.engine.new_id(), kind=OperationKind.DELETE, instance=name)
    await rig.submit(scope, delete)
    await rig.clock.advance(60_000)
    assert (await client.receive()).status == 404


async def test_one_address_cannot_take_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "is_loopback", lambda host: False)
    monkeypatch.setattr(server, "CONNECTIONS_PER_ADDRESS_MAX", 2)
    rig = Rig()
    await rig.start()
    clients = []
    for _ in range(2):
        clients.append(await rig.connect())
        await clients[-1].send(request(VERSIONS))
        assert (await clients[-1].receive()).status == 200
    surplus = await rig.connect()
    await surplus.send(request(VERSIONS))
    assert await surplus.is_closed()
    assert (await rig.ask(source="127.0.1.11")).status == 200
    await rig.stop()


async def test_nor_if_they_all_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "is_loopback", lambda host: False)
    monkeypatch.setattr(server, "CONNECTIONS_PER_ADDRESS_MAX", 2)
    rig = Rig()
    await rig.start()
    clients = [await rig.connect() for _ in range(6)]
    ends = [asyncio.create_task(each.is_closed()) for each in clients]
    for client in clients:
        client.writer.write(b"GET ")
    for closed, end in enumerate(asyncio.as_completed(ends), start=1):
        assert await end
        if closed == 4:
            break
    assert rig.server is not None
    assert len(rig.connections) == 2
    await rig.stop()
    await asyncio.gather(*ends)


async def test_a_connection_that_could_not_be_made_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "is_loopback", lambda host: False)
    monkeypatch.setattr(server, "CONNECTIONS_PER_ADDRESS_MAX", 1)

    async def fail(*_: object, **__: object) -> None:
        raise OSError("the client has gone")

    rig = Rig()
    await rig.start()
    with monkeypatch.context() as failing:
        failing.setattr(asyncio.get_running_loop(), "connect_accepted_socket", fail)
        assert await (await rig.connect()).is_closed()
    client = await rig.connect()
    await client.send(request(VERSIONS))
    assert (await client.receive()).status == 200
    await rig.stop()


async def test_approvals_without_the_header_if_the_operator_says_so() -> None:
    rig = Rig(EndpointRules(is_header_optional_on_post=True))
    await rig.start()
    id = await rig.schedule()
    assert (await rig.ask(method="POST", headers={}, body=approval(id))).status == 200
    assert (await rig.ask(headers={})).status == 400
    await rig.stop()
