"""The connection of the live check: kept or not, and never with half an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairwarning.live_check.http import Connection, NoAnswer, request_bytes
from tests.support.patience import HANG_S

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd:  a \r\n\r\n{}"


class Server:
    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.connections = 0
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                writer.write(self.answer)
                if not self.answer.endswith(b"{}"):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[tuple[Server, str]]:
    server = Server(answer)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        yield server, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("is_kept", "answer", "connections"),
    [
        (True, WHOLE, 1),
        (False, WHOLE, 2),
        (True, WHOLE.replace(b"X-Odd:  a ", b"Connection: close"), 2),
    ],
)
async def test_a_connection_is_used_again_only_if_both_sides_keep_it(
    is_kept: bool, answer: bytes, connections: int
) -> None:
    connection = Connection(is_kept=is_kept)
    async with serving(answer) as (server, url):
        for _ in range(2):
            got = await connection.ask(url, "GET", "/x", {"A": "b"}, within_s=HANG_S)
            assert (got.status, got.body) == (200, b"{}")
        connection.close()
    assert server.connections == connections
    assert all(("Connection: close" in head) is not is_kept for head in server.heads)


async def test_another_server_gets_a_connection_of_its_own() -> None:
    connection = Connection(is_kept=True)
    async with serving(WHOLE) as (one, url), serving(WHOLE) as (other, other_url):
        for each in (url, other_url):
            await connection.ask(each, "GET", "/", {}, within_s=HANG_S)
        connection.close()
    assert (one.connections, other.connections) == (1, 1)


@pytest.mark.parametrize("answer", [b"", WHOLE[:-1], b"no HTTP\r\n\r\n"])
async def test_half_an_answer_is_none_and_the_connection_is_not_used_again(answer: bytes) -> None:
    connection = Connection(is_kept=True)
    async with serving(answer) as (server, url):
        with pytest.raises(NoAnswer):
            await connection.ask(url, "GET", "/", {}, within_s=HANG_S)
        server.answer = WHOLE
        assert (await connection.ask(url, "GET", "/", {}, within_s=HANG_S)).status == 200
        connection.close()
    assert server.connections == 2


async def test_a_server_that_is_silent_or_away_gives_no_answer() -> None:
    connection = Connection(is_kept=True)
    listening = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await listening.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(NoAnswer, match="TimeoutError"):
            await connection.ask(url, "GET", "/", {}, within_s=0.01)
        listening.set()
    with pytest.raises(NoAnswer):
        await connection.ask("http://127.0.0.1:9", "GET", "/", {}, within_s=HANG_S)


def test_a_body_has_its_length_and_an_empty_post_too() -> None:
    def head(method: str, body: bytes) -> str:
        return request_bytes("http://[::1]:80", method, "/x", {}, body, is_kept=True).decode()

    assert head("GET", b"") == "GET /x HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"
    assert "Content-Length: 0\r\n" in head("POST", b"")
    assert head("PUT", b"ab").endswith("Content-Length: 2\r\n\r\nab")
