"""HTTP requests to real sockets: plain, with TLS, and through proxies."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme

from fairwarning.agent.actions import http
from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.registry import HANDLERS
from fairwarning.agent.config.model import Action, Http
from tests.agent.actions.contexts import context

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Hub:
    """Answers each request with the same status, and remembers what it was asked."""

    def __init__(self, status: str = "204 No Content") -> None:
        self.status = status
        self.heads: list[str] = []
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        sizes = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
        size = int(sizes[0].partition(":")[2]) if sizes else 0
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(size))
        writer.write(f"HTTP/1.1 {self.status}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()


@asynccontextmanager
async def listening(serve: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Until every connection has been served to its end."""
    serving: list[asyncio.Future[None]] = []

    async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await serve(reader, writer)
        finally:
            writer.close()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.ensure_future(whole(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*serving)
        await server.wait_closed()


async def do(settings: Http) -> None:
    await HANDLERS[Http].do(Action(settings=settings), context())


async def test_a_request_is_made_as_told() -> None:
    hub = Hub()
    async with listening(hub.serve) as port:
        url = f"http://127.0.0.1:{port}/{{event.id}}"
        await do(Http(url=url, method="put", headers={"X-Key": "k"}, body="about {me}"))
    assert hub.heads[0].startswith("PUT /E-1 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{port}\r\n" in hub.heads[0]
    assert "X-Key: k\r\n" in hub.heads[0]
    assert hub.bodies == [b"about Web-1"]


@pytest.mark.parametrize("status", ["500 Oops", "302 Found", "404 Not Found"])
async def test_anything_but_2xx_is_a_failure_without_secrets(
    status: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with listening(Hub(status).serve) as port:
        url = f"http://me:s3cret@127.0.0.1:{port}/s3cret?key=s3cret"
        with pytest.raises(ActionFailed, match=f"/… answered {status[:3]}") as failed:
            await do(Http(url=url, headers={"X-Key": "s3cret"}))
    assert "s3cret" not in str(failed.value) + caplog.text


async def test_nobody_there_and_no_http_are_failures_that_say_so() -> None:
    async def noise(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")

    async with listening(noise) as port:
        with pytest.raises(ActionFailed, match="gave no answer in HTTP"):
            await do(Http(url=f"http://127.0.0.1:{port}/", method="GET"))
    with pytest.raises(ActionFailed, match=r"cannot be reached: .*refused"):
        await do(Http(url=f"http://127.0.0.1:{port}/"))


async def test_a_header_that_is_none_is_a_failure() -> None:
    async with listening(Hub().serve) as port:
        with pytest.raises(ActionFailed, match="header is not valid"):
            await do(Http(url=f"http://127.0.0.1:{port}/", headers={"no name": "x"}))


async def test_cut_off_it_lets_go_of_the_connection() -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        with suppress(ConnectionError):
            await reader.read()
        let_go.set()

    async with listening(silence) as port:
        task = asyncio.create_task(do(Http(url=f"http://127.0.0.1:{port}/", method="GET")))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await let_go.wait()


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of a server whose CA is among the system's."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(made)
    return made


async def test_tls_is_trusted_by_the_systems_authorities(tls: ssl.SSLContext) -> None:
    hub = Hub()
    async with listening(hub.serve, tls) as port:
        await do(Http(url=f"https://localhost:{port}/x"))
        with pytest.raises(ActionFailed, match=r"is not trusted: .*127"):
            await do(Http(url=f"https://127.0.0.1:{port}/x"))
    assert len(hub.heads) == 1


async def test_an_unknown_authority_is_not_trusted(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    async with listening(Hub().serve, tls) as port:
        with pytest.raises(ActionFailed, match="is not trusted"):
            await do(Http(url=f"https://localhost:{port}/x"))


async def test_a_plain_request_goes_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Hub()
    async with listening(proxy.serve) as port:
        monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{port}")
        await do(Http(url="http://hub.example/x?y=1"))
    assert proxy.heads[0].startswith("POST http://hub.example/x?y=1 HTTP/1.1\r\n")
    assert "Host: hub.example\r\n" in proxy.heads[0]
    assert "Proxy-Authorization: Basic bWU6cHc=\r\n" in proxy.heads[0]


class Tunnel:
    """A proxy that leads every CONNECT to one port."""

    def __init__(self, port: int, status: str = "200 OK") -> None:
        self.port = port
        self.status = status
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {self.status}\r\n\r\n".encode())
        there, beyond = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(self._copy(reader, beyond), self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(4096):
                writer.write(data)
        writer.close()


async def test_tls_goes_through_a_tunnel_of_the_proxy(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    async with listening(hub.serve, tls) as port:
        tunnel = Tunnel(port)
        async with listening(tunnel.serve) as proxy_port:
            monkeypatch.setenv("https_proxy", f"http://me:pw@127.0.0.1:{proxy_port}")
            await do(Http(url="https://localhost/x", headers={"X-Key": "s3cret"}))
    assert tunnel.heads[0].startswith("CONNECT localhost:443 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6cHc=\r\n" in tunnel.heads[0]
    assert "s3cret" not in tunnel.heads[0]
    assert hub.heads[0].startswith("POST /x HTTP/1.1\r\n")
    assert "Proxy-Authorization" not in hub.heads[0]


async def test_a_tunnel_to_an_ipv6_address_is_asked_for_with_brackets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Hub("407 Who are you")
    async with listening(proxy.serve) as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        with pytest.raises(ActionFailed, match="answered 407"):
            await do(Http(url="https://[2001:db8::1]/x"))
    assert proxy.heads[0].startswith("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n")
    assert "Host: [2001:db8::1]:443\r\n" in proxy.heads[0]


async def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(Hub("407 Who are you").serve) as port:
        monkeypatch.setenv("https_proxy", f"http://me:s3cret@127.0.0.1:{port}")
        complaint = f"the proxy http://…@127.0.0.1:{port} answered 407"
        with pytest.raises(ActionFailed, match=complaint) as failed:
            await do(Http(url="https://hub.example/x"))
    assert "s3cret" not in str(failed.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_is_not_there_is_named_as_one_that_may_be_to_blame(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(Hub().serve) as port:
        monkeypatch.setenv(f"{scheme}_proxy", f"me:s3cret@127.0.0.1:{port}")
    with pytest.raises(ActionFailed) as failed:
        await do(Http(url=f"{scheme}://hub.example/x"))
    way = f"(through the proxy http://…@127.0.0.1:{port})"
    assert str(failed.value).startswith(f"{scheme}://hub.example/… {way} cannot be reached: ")
    assert "s3cret" not in str(failed.value)


async def test_no_proxy_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with listening(Hub().serve) as port:
        await do(Http(url=f"http://127.0.0.1:{port}/"))


async def test_a_post_without_a_body_says_that_it_has_none() -> None:
    hub = Hub()
    async with listening(hub.serve) as port:
        await do(Http(url=f"http://127.0.0.1:{port}/"))
    assert "\r\ncontent-length: 0\r\n" in hub.heads[0].lower()


async def test_the_answer_is_read_to_its_end() -> None:
    """Some services stop their work when whoever asked hangs up."""
    body = b"x" * 900_000
    is_taken: list[bool] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # What is under way is small, so the end can be sent only to one who reads.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        writer.transport.set_write_buffer_limits(0)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        is_taken.append(True)

    async with listening(serve) as port:
        await do(Http(url=f"http://127.0.0.1:{port}/"))
    assert is_taken == [True]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "https://u:secret@proxy:3128"])
async def test_a_proxy_of_another_kind_is_refused_without_its_secret(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ActionFailed, match="is not one of http://HOST:PORT") as failed:
        await do(Http(url="http://127.0.0.1:9/"))
    assert "secret" not in str(failed.value)


async def test_a_server_that_hangs_up_without_an_answer_is_a_failure() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with listening(serve) as port:
        with pytest.raises(ActionFailed, match=f"127.0.0.1:{port}"):
            await do(Http(url=f"http://127.0.0.1:{port}/"))


async def test_an_answer_without_an_end_is_read_up_to_a_limit() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not reader.at_eof():
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent += 65_536

    async with listening(serve) as port:
        await do(Http(url=f"http://127.0.0.1:{port}/"))
    assert sent >= http.ANSWER_BYTES_MAX - 65_536
