"""Whoever opens many connections or streams locks nobody out."""

import asyncio
import errno
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.types import Message, Receive, Send

from fairwarning.operator_api import body_memory, connection_limits, server
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.connection_limits import Connections, Entry, client_of
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.server import Acceptor, Tls, bound
from tests.operator_api.rig import Rig, running
from tests.operator_api.test_auth import make_certificate
from tests.support.http_client import http_client
from tests.support.patience import HANG_S

HEAD = b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Closing:
    """Entries that were told to close, in order."""

    def __init__(self, room: Connections) -> None:
        self._room = room
        self.closed: list[Entry] = []

    def enter(self, address: str, *, asks: bool = False) -> Entry:
        entry = self._room.enter(address)
        entry.close = lambda: self.closed.append(entry)
        if asks:
            self._room.asked(entry)
        return entry


def test_the_oldest_that_has_not_asked_makes_room_for_the_next_of_its_client() -> None:
    room = Connections(10_000, count(0, 2).__next__)
    door = Closing(room)
    others = [door.enter("10.0.0.2") for _ in range(3)]
    entries = [door.enter("10.0.0.1") for _ in range(connection_limits.CLIENT_WAITING_MAX + 2)]
    assert door.closed == entries[:2]
    assert not any(each.is_spare for each in entries + others)
    assert len(room) == connection_limits.CLIENT_WAITING_MAX + 3


def test_with_many_clients_the_one_that_has_most_waiting_makes_room() -> None:
    room = Connections(10_000, count(0, 2).__next__)
    door = Closing(room)
    first = door.enter("10.9.9.9")
    for number in range(connection_limits.WAITING_MAX - 2):
        door.enter(f"10.0.{number}.1")
    second = door.enter("10.0.0.1")
    assert not door.closed
    newest = door.enter("10.8.8.8")
    assert len(door.closed) == 1
    assert door.closed[0].client == "10.0.0.1"
    assert first not in door.closed
    assert second not in door.closed
    assert not newest.is_spare


def test_when_all_are_at_work_the_next_ones_are_spares() -> None:
    room = Connections(10_000, count(0, 2).__next__)
    door = Closing(room)
    busy = [door.enter("10.0.0.1", asks=True) for _ in range(connection_limits.CLIENT_MAX)]
    spares = [door.enter("10.0.0.1") for _ in range(connection_limits.SPARE_MAX + 1)]
    assert all(each.is_spare for each in spares)
    assert door.closed == spares[:1]
    assert not door.enter("10.0.0.2").is_spare
    room.leave(busy[0])
    room.leave(busy[0])
    assert not door.enter("10.0.0.1").is_spare
    assert door.enter("10.0.0.1", asks=True) not in busy


def test_nobody_is_ended_whose_request_may_be_on_its_way() -> None:
    """As in a burst of a proxy, which is one client."""
    room = Connections(10_000, lambda: 0.0)
    door = Closing(room)
    entries = [door.enter("10.0.0.1") for _ in range(connection_limits.CLIENT_MAX)]
    assert not door.closed
    assert not any(each.is_spare for each in entries)
    assert door.enter("10.0.0.1").is_spare


def test_who_was_answered_and_is_only_kept_open_makes_room() -> None:
    room = Connections(10_000, count(0, 2).__next__)
    door = Closing(room)
    busy = [door.enter("10.0.0.1", asks=True) for _ in range(connection_limits.CLIENT_MAX)]
    for each in busy[:2]:
        room.rests(each)
    room.asked(busy[0])
    assert not door.enter("10.0.0.1").is_spare
    assert door.closed == [busy[1]]
    assert len(room) == connection_limits.CLIENT_MAX


def test_few_file_descriptors_allow_few_connections() -> None:
    room = Connections(120, count(0, 2).__next__)
    door = Closing(room)
    for number in range(200):
        door.enter(f"10.0.0.{number}", asks=True)
    assert len(room) <= 2 * 120 // connection_limits.FILES_KEPT_SHARE


def test_a_network_of_ipv6_is_one_client() -> None:
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff:1") != client_of("2001:db8:0:1::1")
    assert client_of("::ffff:10.0.0.1") == client_of("10.0.0.1") == "10.0.0.1"


async def opened(rig: Rig, sent: bytes) -> asyncio.StreamWriter:
    url = urlsplit(rig.node.control_url)
    _, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(sent)
    await writer.drain()
    return writer


async def status(rig: Rig, path: str) -> int:
    """On a connection of its own."""
    async with http_client(rig.node.control_url) as client:
        return (await client.get(path)).status_code


async def test_half_heads_lock_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "ALL_MAX", 16)
    async with running() as rig:
        writers = [await opened(rig, b"GET / HTTP/1.1\r\nHost:") for _ in range(60)]
        assert await status(rig, "/healthz") == 200
        assert await status(rig, "/api/v1/events") == 200
        for each in writers:
            each.close()


async def test_with_all_connections_at_work_health_is_still_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_limits, "ALL_MAX", 16)
    async with running() as rig:
        await rig.api.aclose()
        readers = []
        for _ in range(16):
            url = urlsplit(rig.node.control_url)
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(HEAD)
            async with asyncio.timeout(HANG_S):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            readers.append((reader, writer))
        for path in ("/healthz", "/readyz", "/metrics?x=1"):
            assert await status(rig, path) == 200
        async with http_client(rig.node.control_url) as client:
            answer = await client.get("/api/v1/events")
            assert Rig.check(answer, 503)["code"] == "too-many-connections"
            assert answer.headers["retry-after"]
        for _, writer in readers:
            writer.close()
        async with asyncio.timeout(HANG_S):
            while await status(rig, "/api/v1/events") != 200:
                pass


async def test_streams_of_one_caller_have_a_limit_and_are_counted_right(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "CALLER_STREAMS_MAX", 3)
    for _ in range(20):
        writer = await opened(rig, HEAD)
        writer.transport.abort()
    async with asyncio.timeout(HANG_S):
        while (await rig.api.head("/stream")).status_code != 200:
            pass
    made = await rig.post("/tokens", {"name": "other", "role": "viewer"}, 201)
    streams: list[httpx.Response] = []
    async with asyncio.timeout(HANG_S):
        while len(streams) < 3:
            request = rig.api.build_request("GET", "/stream")
            answer = await rig.api.send(request, stream=True)
            if answer.status_code == 200:
                streams.append(answer)
    portal = f"{rig.node.control_url}/stream"
    assert (await rig.api.get("/stream")).status_code == 503
    assert (await rig.api.get(portal)).status_code == 503
    headers = {"Authorization": f"Bearer {made['secret']}"}
    async with rig.api.stream("GET", "/stream", headers=headers) as other:
        assert other.status_code == 200
    for each in streams:
        await each.aclose()


async def test_a_silent_tls_handshake_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S_MAX", 0.05)
    certificate, key, authority = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        port = urlsplit(rig.node.control_url).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(HANG_S):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()
        monkeypatch.setattr(server, "HANDSHAKE_S_MAX", HANG_S)
        trust = ssl.create_default_context(cafile=str(authority))
        async with httpx.AsyncClient(verify=trust, timeout=HANG_S) as client:
            answer = await client.get(f"https://127.0.0.1:{port}/healthz")
            assert answer.status_code == 200


async def test_silent_tls_handshakes_lock_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "ALL_MAX", 16)
    certificate, key, authority = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        port = urlsplit(rig.node.control_url).port
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        trust = ssl.create_default_context(cafile=str(authority))
        async with httpx.AsyncClient(verify=trust, timeout=HANG_S) as client:
            answer = await client.get(f"https://127.0.0.1:{port}/healthz")
            assert answer.status_code == 200
        for _, writer in silent:
            writer.close()


@contextmanager
def served(soft: int, hard: int) -> Iterator[tuple[int, dict[str, str]]]:
    """The real program with so many file descriptors: its process, and what it says."""
    listeners = ("--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0")
    with subprocess.Popen(
        [sys.executable, "-m", "fairwarning", "serve", *listeners, "--store", "memory:", "--json"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),  # noqa: PLW1509
    ) as process:
        try:
            assert process.stdout is not None
            yield process.pid, json.loads(process.stdout.readline())
        finally:
            process.terminate()


def test_the_soft_limit_of_files_is_raised_to_the_hard_one() -> None:
    with served(200, 900) as (pid, _):
        limits = Path(f"/proc/{pid}/limits").read_text()
        line = next(each for each in limits.splitlines() if each.startswith("Max open files"))
        assert line.split()[3:5] == ["900", "900"]


async def test_idle_connections_leave_file_descriptors_for_polls() -> None:
    with served(150, 150) as (pid, said):
        url = urlsplit(said["control"])
        before = len(os.listdir(f"/proc/{pid}/fd"))
        half = []
        for _ in range(200):
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(b"GET / HTTP/1.1\r\nHost:")
            half.append((reader, writer))
        async with http_client() as client:
            assert (await client.get(f"{said['control']}/healthz")).status_code == 200
            assert len(os.listdir(f"/proc/{pid}/fd")) <= before + 2 * 150 // 3
            poll = f"{said['metadata'][0]}/metadata/versions"
            assert (await client.get(poll, headers={"Metadata": "true"})).status_code < 500
        for _, writer in half:
            writer.close()


async def test_a_burst_of_one_client_is_answered(rig: Rig) -> None:
    """More at once than may wait for their first request."""
    at = urlsplit(str(rig.api.base_url))
    request = f"GET /healthz HTTP/1.1\r\nHost: {at.netloc}\r\nConnection: close\r\n\r\n".encode()

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    answers = await asyncio.gather(
        *(ask() for _ in range(2 * connection_limits.CLIENT_WAITING_MAX))
    )
    assert {each.split(b"\r\n")[0] for each in answers} == {b"HTTP/1.1 200 OK"}


class FullListener:
    """Has no file descriptor left for the first connection."""

    def __init__(self, real: socket.socket) -> None:
        self._real = real
        self.failures = 0

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if not self.failures:
            self.failures += 1
            raise OSError(errno.EMFILE, "too many open files")
        return self._real.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Greeting(asyncio.Protocol):
    def enter(self, room: Connections, entry: Entry) -> None:
        pass

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


async def test_a_listener_without_file_descriptors_goes_on_when_there_are_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_PAUSE_S", 0.01)
    real = bound("127.0.0.1", 0)
    listener = FullListener(real)
    made: Any = Acceptor(cast(Any, listener), cast(Any, Greeting), None, Connections(1_000))
    made.start()
    try:
        async with asyncio.timeout(HANG_S):
            reader, writer = await asyncio.open_connection(*real.getsockname())
            assert await reader.read() == b"hello"
        writer.close()
    finally:
        made.close()
        await made.wait_closed()
        real.close()
    assert listener.failures == 1


def test_who_was_just_answered_may_have_asked_again() -> None:
    now = [100.0]
    room = Connections(10_000, lambda: now[0])
    door = Closing(room)
    busy = [door.enter("10.0.0.1", asks=True) for _ in range(connection_limits.CLIENT_MAX)]
    now[0] += 60
    room.rests(busy[0])
    now[0] += connection_limits.ARRIVAL_S / 2
    assert door.enter("10.0.0.1").is_spare
    now[0] += connection_limits.ARRIVAL_S / 2
    assert not door.enter("10.0.0.1").is_spare
    assert door.closed == [busy[0]]


def test_who_has_asked_or_left_is_not_waiting_any_more() -> None:
    now = [100.0]
    room = Connections(10_000, lambda: now[0])
    door = Closing(room)
    for number in range(connection_limits.WAITING_MAX):
        asks = bool(number % 2)
        room.leave(door.enter(f"10.0.{number // 250}.{number % 250}", asks=asks))
    door.enter("10.9.9.9")
    now[0] += 60
    door.enter("10.8.8.8")
    assert (door.closed, len(room)) == ([], 2)


def test_a_client_with_too_many_makes_room_itself() -> None:
    """Others keep their connections, though one of them has more that only wait."""
    now = [100.0]
    room = Connections(10_000, lambda: now[0])
    door = Closing(room)
    others = [door.enter("10.0.0.2") for _ in range(50)]
    for _ in range(connection_limits.CLIENT_MAX - 1):
        door.enter("10.0.0.1", asks=True)
    own = door.enter("10.0.0.1")
    now[0] += 60
    assert not door.enter("10.0.0.1").is_spare
    assert door.closed == [own]
    assert not any(each.has_left for each in others)


async def test_a_handshake_that_breaks_off_leaves_its_place(tmp_path: Path) -> None:
    certificate, key, _ = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    listener, room = bound("127.0.0.1", 0), Connections(1_000)
    made = Acceptor(listener, cast(Any, Greeting), tls, room)
    made.start()
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(b"this is no handshake\r\n\r\n")
    async with asyncio.timeout(HANG_S):
        with suppress(ConnectionError):
            await reader.read()
        await made.wait_closed()
    assert len(room) == 0
    writer.close()
    made.close()
    listener.close()


async def test_all_streams_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "STREAMS_MAX", 2)
    streams = connection_limits.OpenStreams()

    async def lines() -> AsyncIterator[bytes]:
        yield b"x"

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        pass

    callers = [Caller(f"c{n}", Role.VIEWER, f"id{n}") for n in range(3)]
    first, _ = (streams.begin(each, lines()) for each in callers[:2])
    with pytest.raises(Problem) as problem:
        streams.begin(callers[2], lines())
    assert (problem.value.status, problem.value.code) == (503, "too-many-streams")
    await first({"type": "http"}, gone, send)
    streams.begin(callers[2], lines())


async def test_bodies_of_many_clients_have_a_limit_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what was held is free again, also for whoever was refused."""
    monkeypatch.setattr(body_memory, "ALL_BYTES_MAX", 250)
    gates = {client: asyncio.Event() for client in ("a", "b", "c")}

    async def work(scope: MutableMapping[str, Any], receive: Receive, _: Send) -> None:
        await receive()
        await gates[scope["client"][0]].wait()

    room = body_memory.BodyMemory(work)

    async def ask(client: str) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": bytes(body_memory.FREE_BYTES + 100)}

        async def send(_: Message) -> None:
            pass

        await room({"type": "http", "client": (client, 1)}, receive, send)

    first, second = asyncio.create_task(ask("a")), asyncio.create_task(ask("b"))
    await asyncio.sleep(0)
    with pytest.raises(Problem) as problem:
        await ask("c")
    assert (problem.value.status, problem.value.code) == (503, "too-many-bodies")
    gates["a"].set()
    await first
    gates["c"].set()
    await ask("c")
    gates["b"].set()
    await second
    assert not room._held
