"""The proxy before a real server. The suite `./test network` runs it in namespaces."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from fairwarning.metadata.identity import sign
from fairwarning.network import proxy as proxy_module
from fairwarning.network.network_file import Guest, Network, NetworkFile
from fairwarning.network.proxy import Proxy, ProxyError
from tests.support.patience import HANG_S
from tests.support.processes import Served, clean_environment, free_port, serving

SECRET = "s3cret"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
WEB, DB, STRAY = "127.0.0.2", "127.0.0.3", "127.0.0.4"
"""The addresses of the guests. Every address of 127.0.0.0/8 is on loopback."""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    environment = {**clean_environment(), "FAIRWARNING_PROXY_SECRET": SECRET}
    with serving("--proxy", "127.0.0.1", env=environment) as served:
        yield served


def network_file(server: str, port: int, **guests: str) -> NetworkFile:
    return NetworkFile(
        server=server,
        networks=(
            Network(
                name="lab",
                listen=("127.0.0.1", port),
                guests=tuple(
                    Guest(instance=name.replace("_", "-"), addresses=(address,))
                    for name, address in guests.items()
                ),
            ),
        ),
    )


@contextlib.asynccontextmanager
async def running_proxy(server: str) -> AsyncIterator["Lab"]:
    port = free_port()
    proxy = Proxy(network_file(server, port, web_0=WEB, db=DB), SECRET)
    await proxy.start()
    lab = Lab(proxy, port)
    try:
        async with asyncio.timeout(HANG_S):
            yield lab
    finally:
        for client in lab.clients:
            client.writer.close()
        await proxy.stop()


class Lab:
    def __init__(self, proxy: Proxy, port: int) -> None:
        self.proxy, self.port = proxy, port
        self.clients: list[Client] = []

    async def connect(self, address: str) -> "Client":
        """Connect as the guest of this address."""
        client = Client(
            *await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        )
        self.clients.append(client)
        return client


class Client:
    """A guest's connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, method: str, target: str, *headers: str, body: str = "") -> None:
        length = [f"Content-Length: {len(body)}"] if body else []
        lines = [f"{method} {target} HTTP/1.1", "Host: 169.254.169.254", *headers, *length, "", ""]
        self.writer.write(("\r\n".join(lines) + body).encode())

    async def answer(self) -> tuple[int, dict[str, str], str]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = head.strip().split("\r\n")
        headers = {k.lower(): v for k, _, v in (each.partition(": ") for each in lines)}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(status.split()[1]), headers, body.decode()

    async def ask(self, *arguments: str, body: str = "") -> tuple[int, str]:
        self.send(*arguments, body=body)
        status, _, text = await self.answer()
        return status, text

    async def name(self) -> str:
        path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
        return (await self.ask("GET", path, "Metadata: true"))[1]


async def test_the_source_address_decides_which_guest_asks(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        web, db = await lab.connect(WEB), await lab.connect(DB)
        assert [await web.name(), await db.name(), await web.name()] == ["web-0", "db", "web-0"]


async def test_an_address_of_no_guest_is_told_so(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        stray = await lab.connect(STRAY)
        status, text = await stray.ask("GET", EVENTS, "Metadata: true")
        assert status == 404
        assert f"Address {STRAY} belongs to no instance of this network" in text
        assert await stray.reader.read() == b""


async def test_no_header_of_a_guest_makes_it_another(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        web = await lab.connect(WEB)
        path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
        lies = (
            "X-Instance-ID: db",
            f"x-instance-id-signature: {sign(SECRET, 'db')}",
            "X-Forwarded-For: 127.0.0.3",
            "Forwarded: for=127.0.0.3",
        )
        assert await web.ask("GET", path, "Metadata: true", *lies) == (200, "web-0")


async def test_a_request_arrives_whole_and_signed() -> None:
    received = asyncio.Queue[bytes]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        received.put_nowait(head + await reader.readexactly(4))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as upstream:
        port_up = upstream.sockets[0].getsockname()[1]
        async with running_proxy(f"http://127.0.0.1:{port_up}") as lab:
            web = await lab.connect(WEB)
            headers = ("Metadata: true", "User-Agent: curl", "Connection: keep-alive, x")
            assert await web.ask("POST", EVENTS, *headers, body="body") == (200, "")
    head, _, body = (await received.get()).decode().partition("\r\n\r\n")
    assert body == "body"
    assert set(head.lower().split("\r\n")) == {
        "content-length: 4",
        "host: 169.254.169.254",
        "metadata: true",
        f"post {EVENTS} http/1.1",
        "user-agent: curl",
        "x-instance-id: web-0",
        f"x-instance-id-signature: {sign(SECRET, 'web-0')}",
    }


async def test_a_client_may_ask_leave_to_send_its_body(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        web = await lab.connect(WEB)
        body = "{}"
        web.send("POST", EVENTS, "Metadata: true", "Expect: 100-continue", "Content-Length: 2")
        assert (await web.answer())[0] == 100
        web.writer.write(body.encode())
        assert (await web.answer())[0] in (200, 400)


async def test_requests_that_are_sent_at_once_are_answered_in_order(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        web = await lab.connect(WEB)
        for _ in range(5):
            web.send("GET", EVENTS, "Metadata: true")
        assert [(await web.answer())[0] for _ in range(5)] == [200] * 5


async def test_an_answer_without_a_body_stays_one(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        web = await lab.connect(WEB)
        web.send("GET", EVENTS, "Metadata: true")
        _, headers, _ = await web.answer()
        web.send("GET", EVENTS, "Metadata: true", f"If-None-Match: {headers['etag']}")
        assert (await web.answer())[0] == 304
        assert await web.name() == "web-0"


async def test_a_held_poll_ends_at_the_server_when_the_guest_hangs_up() -> None:
    ended = asyncio.Event()
    asked = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        if not await reader.read():
            ended.set()
        writer.close()

    upstream = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with upstream:
        port_up = upstream.sockets[0].getsockname()[1]
        async with running_proxy(f"http://127.0.0.1:{port_up}") as lab:
            web = await lab.connect(WEB)
            web.send("GET", f"{EVENTS}&wait=300", "Metadata: true")
            await asked.wait()
            web.writer.close()
            await ended.wait()


async def test_a_server_that_is_away_gives_503_and_is_found_again() -> None:
    port_up = free_port()
    async with running_proxy(f"http://127.0.0.1:{port_up}") as lab:
        web = await lab.connect(WEB)
        web.send("GET", EVENTS, "Metadata: true")
        status, headers, _ = await web.answer()
        assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", port_up):
            web = await lab.connect(WEB)
            assert await web.ask("GET", EVENTS) == (200, "hi")
            # The server has closed its end meanwhile, and the next poll finds it all the same.
            assert await web.ask("GET", EVENTS) == (200, "hi")


@pytest.mark.parametrize(
    ("method", "body", "status", "arrived"),
    [
        ("GET", "", 200, ["GET", "GET", "GET"]),
        ("GET", "{}", 503, ["GET", "GET"]),
        ("POST", "{}", 503, ["GET", "POST"]),
    ],
)
async def test_only_what_changes_nothing_is_sent_again_after_a_lost_connection(
    method: str, body: str, status: int, arrived: list[str]
) -> None:
    """The server may have carried out the first one before its connection ended."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_first = True
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                seen.append(head.split()[0])
                if not is_first:
                    break
                is_first = False
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1")
    port = listener.sockets[0].getsockname()[1]
    async with listener, running_proxy(f"http://127.0.0.1:{port}") as lab:
        web = await lab.connect(WEB)
        assert (await web.ask("GET", EVENTS, "Metadata: true"))[0] == 200
        assert (await web.ask(method, EVENTS, "Metadata: true", body=body))[0] == status
    assert seen == arrived


async def test_a_body_is_sent_on_a_new_connection_if_the_server_has_closed_the_last() -> None:
    closed = asyncio.Event()

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with await asyncio.start_server(answer_once, "127.0.0.1", 0) as upstream:
        port_up = upstream.sockets[0].getsockname()[1]
        async with running_proxy(f"http://127.0.0.1:{port_up}") as lab:
            web, db = await lab.connect(WEB), await lab.connect(DB)
            assert await web.ask("GET", EVENTS) == (200, "hi")
            await closed.wait()
            # While this is answered, the proxy notices the end of the other connection.
            assert await db.ask("GET", EVENTS) == (200, "hi")
            assert await web.ask("POST", EVENTS, body="{}") == (200, "hi")


async def test_an_answer_that_breaks_off_is_not_made_whole() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
        writer.close()

    async with await asyncio.start_server(half, "127.0.0.1", 0) as upstream:
        port_up = upstream.sockets[0].getsockname()[1]
        async with running_proxy(f"http://127.0.0.1:{port_up}") as lab:
            web = await lab.connect(WEB)
            web.send("GET", EVENTS)
            assert (await web.reader.read()).endswith(b"\r\n\r\nhi")


@pytest.mark.parametrize("sent", [b"rubbish\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9_000])
async def test_a_broken_request_gets_an_error(server: Served, sent: bytes) -> None:
    async with running_proxy(server.metadata) as lab:
        web = await lab.connect(WEB)
        web.writer.write(sent)
        status, _, text = await web.answer()
        assert status in (400, 431)
        assert "Bad request" in json.loads(text)["error"]


async def test_a_new_file_counts_from_the_next_connection(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        old = await lab.connect(WEB)
        assert await old.name() == "web-0"
        await lab.proxy.reload(network_file(server.metadata, lab.port, db=WEB))
        assert await (await lab.connect(WEB)).name() == "db"
        assert await old.name() == "web-0"


async def test_a_new_file_that_cannot_be_served_leaves_the_old_one(server: Served) -> None:
    async with running_proxy(server.metadata) as lab:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            other = taken.getsockname()[1]
            with pytest.raises(ProxyError, match=f"cannot listen at 127.0.0.1:{other}"):
                await lab.proxy.reload(network_file(server.metadata, other, db=WEB))
        assert await (await lab.connect(WEB)).name() == "web-0"


async def test_one_guest_cannot_take_all_connections(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.network.proxy.CONNECTIONS_PER_ADDRESS_MAX", 2)
    async with running_proxy(server.metadata) as lab:
        kept = [await lab.connect(WEB) for _ in range(2)]
        assert [await each.name() for each in kept] == ["web-0"] * 2
        over = await lab.connect(WEB)
        assert await over.reader.read() == b""
        assert await (await lab.connect(DB)).name() == "db"
        kept[0].writer.close()
        await kept[0].writer.wait_closed()
        assert await kept[1].name() == "web-0"


async def test_guests_of_two_namespaces_with_one_address_do_not_share_their_connections(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_module, "CONNECTIONS_PER_ADDRESS_MAX", 1)
    # The namespaces differ only by name here, so that both listeners are on this loopback.
    monkeypatch.setattr(proxy_module, "_in_namespace", proxy_module._bound)
    async with running_proxy(server.metadata) as lab:
        ports = {"web-0": free_port(), "db": free_port()}
        networks = tuple(
            Network(
                name=f"of-{name}",
                namespace=name,
                listen=("127.0.0.1", port),
                guests=(Guest(instance=name, addresses=(WEB,)),),
            )
            for name, port in ports.items()
        )
        await lab.proxy.reload(NetworkFile(server=server.metadata, networks=networks))
        for name, port in ports.items():
            lab.port = port
            assert await (await lab.connect(WEB)).name() == name


def test_without_a_server_there_is_no_proxy() -> None:
    with pytest.raises(ProxyError, match="names no server"):
        Proxy(NetworkFile(networks=()), SECRET)


async def test_a_namespace_that_is_not_there_is_named() -> None:
    network = Network(name="lab", namespace="no-such-place", guests=())
    proxy = Proxy(NetworkFile(networks=(network,), server="http://127.0.0.1:1"), SECRET)
    with pytest.raises(ProxyError, match="in the namespace no-such-place: No such file"):
        await proxy.start()
