"""Malformed, endless, slow and half-closed: 4xx or a closed door, and nobody else notices."""

import asyncio
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairwarning.metadata import expiry
from fairwarning.metadata.settings import BODY_BYTES_MAX, HEAD_BYTES_MAX
from tests.metadata.rig import PATH, Client, Rig, request
from tests.support.patience import HANG_S

FOLDER = Path(__file__).parent / "corpus"
CORPUS = {path: path.read_bytes() for path in sorted(FOLDER.glob("*.http"))}


async def talk(rig: Rig, sent: bytes) -> bytes:
    """All that the server says to these bytes, followed by our end of the conversation."""
    client = await rig.connect()
    try:
        await client.send(sent)
        client.writer.write_eof()
        async with asyncio.timeout(HANG_S):
            return await client.reader.read()
    except (ConnectionError, OSError):
        return b""
    finally:
        await client.close()


def check(said: bytes) -> None:
    """Whole answers, one behind the other, and none of them 5xx."""
    while said:
        head, end, rest = said.partition(b"\r\n\r\n")
        assert end, said[:80]
        status = int(head.split()[1])
        assert head.startswith(b"HTTP/1.1 ")
        assert status < 500, head
        lines = head.lower().split(b"\r\n")
        lengths = [int(each.split()[1]) for each in lines if each.startswith(b"content-length:")]
        length = sum(lengths) if b"allow: get" not in head.lower() or rest[:1] == b"{" else 0
        said = rest[length:]


async def is_well(rig: Rig) -> bool:
    return (await rig.ask(source="127.0.1.13")).status == 200


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
async def test_corpus(rig: Rig, path: Path) -> None:
    check(await talk(rig, CORPUS[path]))
    assert await is_well(rig)


async def test_a_head_without_end(rig: Rig) -> None:
    client = await rig.connect()
    await client.send(f"GET {PATH} HTTP/1.1\r\n".encode())
    headers = b"".join(b"X: %100d\r\n" % number for number in range(20_000))
    client.writer.write(headers)
    assert (await client.receive()).status == 431
    assert await is_well(rig)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET " + b"/" * (HEAD_BYTES_MAX + 10) + b" HTTP/1.1\r\n\r\n",
        f"GET {PATH} HTTP/1.1\r\nX: {'x' * (HEAD_BYTES_MAX + 10)}\r\n\r\n".encode(),
        f"GET {PATH} HTTP/1.1\r\n".encode() + b"X: x\r\n" * 100 + b"\r\n",
    ],
    ids=["target", "header", "headers"],
)
async def test_a_head_that_is_too_large(rig: Rig, sent: bytes) -> None:
    client = await rig.connect()
    await client.send(sent)
    assert (await client.receive()).status == 431
    assert await client.is_closed()


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(rig: Rig) -> None:
    client = await rig.connect()
    head = {"Metadata": "true", "Content-Length": str(10 * 1024 * 1024)}
    await client.send(request(PATH, method="POST", headers=head))
    assert (await client.receive()).status == 413
    assert await client.is_closed()


async def test_a_chunked_body_that_is_too_large(rig: Rig) -> None:
    client = await rig.connect()
    head = {"Metadata": "true", "Transfer-Encoding": "chunked"}
    await client.send(request(PATH, method="POST", headers=head))
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    for _ in range(BODY_BYTES_MAX // 0x1000 + 1):
        await client.send(chunk)
    assert (await client.receive()).status == 413


async def test_a_few_pipelined_requests_are_answered_in_order(rig: Rig) -> None:
    client = await rig.connect()
    await rig.ask()
    await client.send(
        request(PATH) + request("/metadata/versions") + request("/nowhere") + request(PATH)
    )
    assert [(await client.receive()).status for _ in range(4)] == [200, 200, 404, 200]


async def test_many_pipelined_requests_are_answered_in_order(rig: Rig) -> None:
    client = await rig.connect()
    await client.send((request(PATH) + request("/nowhere")) * 100)
    assert [(await client.receive()).status for _ in range(200)] == [200, 404] * 100


async def test_a_half_closed_client_still_gets_its_answer(rig: Rig) -> None:
    id = await rig.schedule()
    client = await rig.connect()
    body = b'{"StartRequests":[{"EventId":"%s"}]}' % id.encode()
    await client.send(request(PATH, method="POST", body=body))
    client.writer.write_eof()
    assert (await client.receive()).status == 200
    assert await client.is_closed()


@pytest.mark.parametrize("sent", [b"", b"GET ", request(PATH)[:-2]])
async def test_a_slow_sender_is_shown_out(
    rig: Rig, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "REQUEST_S_MAX", 0.05)
    client = await rig.connect()
    await client.send(sent or b"\r\n")
    assert await client.is_closed()
    monkeypatch.undo()
    assert await is_well(rig)


async def test_an_empty_line_does_not_move_the_limit_and_a_request_does(rig: Rig) -> None:
    client = await rig.connect()
    await client.send(b"\r\n")
    assert rig.server is not None
    async with asyncio.timeout(HANG_S):
        while not rig.connections:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        (connection,) = rig.connections
        while connection._parser is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    until_s = connection._expires_s
    connection.data_received(b"\r\n")
    assert connection._expires_s == until_s
    connection.data_received(b"GET ")
    assert connection._expires_s > until_s
    await client.close()


async def test_empty_lines_buy_no_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "REQUEST_S_MAX", 0.05)
    client = await rig.connect()

    async def drip() -> None:
        while True:
            await client.send(b"\r\n")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip())
    assert await client.is_closed()
    dripping.cancel()
    await asyncio.gather(dripping, return_exceptions=True)


@pytest.mark.parametrize("hosts", [[], ["a", "a"], ["a", "b"]])
async def test_a_request_names_one_host(rig: Rig, hosts: list[str]) -> None:
    """With none or two, a proxy before us and we might not mean the same."""
    lines = "".join(f"Host: {host}\r\n" for host in hosts)
    client = await rig.connect()
    await client.send(f"GET {PATH} HTTP/1.1\r\n{lines}Metadata: true\r\n\r\n".encode())
    assert (await client.receive()).status == 400
    assert await client.is_closed()


async def test_an_old_request_need_not_name_its_host(rig: Rig) -> None:
    client = await rig.connect()
    await client.send(f"GET {PATH} HTTP/1.0\r\nMetadata: true\r\n\r\n".encode())
    assert (await client.receive()).status == 200


async def test_an_idle_kept_connection_is_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "KEEP_ALIVE_S", 0.05)
    client = await rig.connect()
    await client.send(request(PATH))
    assert (await client.receive()).status == 200
    assert await client.is_closed()


async def test_a_client_that_does_not_read_is_not_read_from_for_ever(rig: Rig) -> None:
    client = await rig.connect()
    raw = client.writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    sent = request("/metadata/instance?api-version=2021-02-01") * 16
    for _ in range(200):
        if client.writer.is_closing():
            break
        client.writer.write(sent)
        await asyncio.sleep(0)
    assert await is_well(rig)


async def test_connection_close_is_answered_in_kind(rig: Rig) -> None:
    client: Client = await rig.connect()
    await client.send(request(PATH, headers={"Metadata": "true", "Connection": "close"}))
    response = await client.receive()
    assert response.headers["connection"] == "close"
    assert await client.is_closed()


async def test_http_1_0_closes(rig: Rig) -> None:
    client = await rig.connect()
    await client.send(f"GET {PATH} HTTP/1.0\r\nMetadata: true\r\n\r\n".encode())
    assert (await client.receive()).status == 200
    assert await client.is_closed()


SAMPLE = request(PATH, method="POST", body=b'{"StartRequests":[{"EventId":"x"}]}')
mutated = st.builds(
    b"".join,
    st.lists(
        st.one_of(
            st.binary(max_size=20),
            st.sampled_from([SAMPLE, request(PATH), b"\r\n", b"\r\n\r\n", b" HTTP/1.1\r\n", b":"]),
            st.integers(0, len(SAMPLE)).map(lambda cut: SAMPLE[:cut]),
            st.integers(0, len(SAMPLE)).map(lambda cut: SAMPLE[cut:]),
            st.sampled_from([b"Content-Length: -1\r\n", b"Content-Length: 5\r\n",
                             b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n",
                             b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"\xff\xfe", b"\x00"]),
        ),
        max_size=12,
    ),
)  # fmt: skip


@settings(
    max_examples=250,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sent=mutated)
async def test_fuzz(rig: Rig, sent: bytes) -> None:
    check(await talk(rig, sent))


async def test_after_all_that_nothing_is_left_behind(rig: Rig) -> None:
    for sent in CORPUS.values():
        await talk(rig, sent)
    assert await is_well(rig)
    assert rig.server is not None
    connections = rig.server._state.connections
    async with asyncio.timeout(HANG_S):
        while connections or connections._counts:  # noqa: ASYNC110
            await asyncio.sleep(0)
