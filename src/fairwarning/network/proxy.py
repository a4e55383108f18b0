"""The proxy that serves the metadata endpoint to networks whose addresses overlap.

Theory of operation. One process listens in the network namespace of each network, and sends what
it hears to the server from its own namespace. The namespace and the source address say which guest
a client is. The proxy names the guest in `X-Instance-ID`, with a signature that the server checks.
What a client says about itself in these headers is left out. A socket belongs to the namespace in
which it was made, so only making the listeners needs a thread that enters the namespace.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import h11

from fairwarning.metadata.identity import canonical, sign
from fairwarning.metadata.responses import error
from fairwarning.metadata.settings import (
    CONNECTIONS_PER_ADDRESS_MAX,
    HEAD_BYTES_MAX,
    KEEP_ALIVE_S,
    REQUEST_S_MAX,
    WAIT_S_MAX,
)
from fairwarning.network.network_file import Network, NetworkFile

_log = logging.getLogger(__name__)
_CONNECT_S = 5.0
"""How long the server may take to accept a connection; it is near, so more means it is away."""
_ANSWER_S = WAIT_S_MAX + 30.0
"""How long the server may take to answer: the longest poll that it holds, and time to spare."""
_PIECE_BYTES = 16 * 1024  # Few reads, and little memory for each connection.
_AHEAD_BYTES_MAX = 64 * 1024
"""How many bytes a client may send before its last request is answered: many whole requests."""
_NOT_FORWARDED = frozenset(
    b"x-instance-id x-instance-id-signature x-forwarded-for forwarded "
    b"connection keep-alive proxy-connection te upgrade expect".split()
)
"""Headers that only the proxy may set, and headers about one connection only."""
_BODY_HEADERS = (b"content-length", b"transfer-encoding")
_AWAY = 503  # Clients try again after this status.
_NETNS_FOLDER = "/run/netns"
# Constants of Linux that Python does not have.
_CLONE_NEWNET = 0x40000000
_IP_FREEBIND = 15
_IPV6_FREEBIND = 78


class ProxyError(Exception):
    """The proxy cannot start. The message says why and what to do."""


class Proxy:
    def __init__(self, file: NetworkFile, secret: str) -> None:
        if not file.server:
            raise ProxyError('the network file names no server; add server = "http://…"')
        self._secret = secret
        self._file = file
        self._servers: dict[tuple[str, tuple[str, int]], asyncio.Server] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._open = Counter[tuple[str, str]]()

    async def start(self) -> None:
        """Listen on each network. Raises ProxyError."""
        await self.reload(self._file)

    async def reload(self, file: NetworkFile) -> None:
        """Use another network file from now on. Connections under way keep their guest.

        Raises ProxyError if a listener cannot be made; then the old file stays in use.
        """
        if not file.server:
            raise ProxyError('the network file names no server; add server = "http://…"')
        wanted = {(each.namespace, each.listen): each for each in file.networks}
        made: dict[tuple[str, tuple[str, int]], asyncio.Server] = {}
        try:
            for place, network in wanted.items():
                if place not in self._servers:
                    made[place] = await self._listen(network, place)
        except BaseException:
            for server in made.values():
                server.close()
            raise
        for place in self._servers.keys() - wanted.keys():
            self._servers.pop(place).close()
        self._servers |= made
        self._file = file

    async def stop(self) -> None:
        for server in self._servers.values():
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _listen(self, network: Network, place: tuple[str, tuple[str, int]]) -> asyncio.Server:
        listener = await _open_listener(network)

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            # `stop` cancels this task. Python 3.11 would report that as an error.
            ends = (OSError, TimeoutError, h11.ProtocolError, _ClientGone, asyncio.CancelledError)
            with contextlib.suppress(*ends):
                await self._serve(reader, writer, place)

        return await asyncio.start_server(accept, sock=listener, limit=_PIECE_BYTES)

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        place: tuple[str, tuple[str, int]],
    ) -> None:
        host, _, *more = writer.get_extra_info("peername")
        address = canonical(host.partition("%")[0], more[1] if len(more) > 1 else 0)
        who = (place[0], address)
        self._open[who] += 1
        try:
            if self._open[who] <= CONNECTIONS_PER_ADDRESS_MAX:
                guests = self._guests(place)
                await _Connection(
                    reader, writer, guests.get(address), address, self._file.server, self._secret
                ).run()
        finally:
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]
            writer.close()

    def _guests(self, place: tuple[str, tuple[str, int]]) -> Mapping[str, str]:
        return {
            address: guest.instance
            for network in self._file.networks
            if (network.namespace, network.listen) == place
            for guest in network.guests
            for address in guest.addresses
        }


class _Connection:
    """One connection of a client, with a connection to the server for its requests."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        instance: str | None,
        address: str,
        server: str,
        secret: str,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._instance, self._address = instance, address
        self._server, self._secret = server, secret
        self._client = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._ahead = 0
        self._upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection] | None
        self._upstream = None

    async def run(self) -> None:
        try:
            while True:
                try:
                    request = await self._request()
                    if request is None:
                        return
                    await self._forward(request)
                except h11.RemoteProtocolError as problem:
                    await self._refuse(problem.error_status_hint or 400, f"Bad request. {problem}")
                    return
                if self._client.our_state is not h11.DONE or (
                    self._client.their_state is not h11.DONE
                ):
                    return
                self._client.start_next_cycle()
                self._ahead = 0
        finally:
            self._drop_upstream()

    async def _request(self) -> h11.Request | None:
        """Return the head of the next request, or None at the end of the connection."""
        async with asyncio.timeout(KEEP_ALIVE_S):
            event = self._client.next_event()
            if event is h11.NEED_DATA:
                self._client.receive_data(await self._reader.read(_PIECE_BYTES))
                event = self._client.next_event()
        async with asyncio.timeout(REQUEST_S_MAX):
            while event is h11.NEED_DATA:
                self._client.receive_data(await self._reader.read(_PIECE_BYTES))
                event = self._client.next_event()
        return event if isinstance(event, h11.Request) else None

    async def _forward(self, request: h11.Request) -> None:
        if self._instance is None:
            text = f"Not found. Address {self._address} belongs to no instance of this network"
            await self._refuse(404, text)
            return
        # The server may end an idle connection just now. What changes nothing is sent once more.
        has_body = any(name in _BODY_HEADERS for name, _ in request.headers)
        may_repeat = self._upstream is not None and request.method == b"GET" and not has_body
        while True:
            try:
                await self._send_request(request)
                await self._send_answer()
                return
            except _ServerAway as problem:
                self._drop_upstream()
                if self._client.our_state is not h11.SEND_RESPONSE:
                    return
                if not may_repeat:
                    _log.warning("the server %s does not answer: %s", self._server, problem)
                    await self._refuse(503, "The metadata service is not available; ask again")
                    return
                may_repeat = False

    async def _send_request(self, request: h11.Request) -> None:
        assert self._instance is not None
        headers = [
            *(each for each in request.headers if each[0] not in _NOT_FORWARDED),
            (b"x-instance-id", self._instance.encode()),
            (b"x-instance-id-signature", sign(self._secret, self._instance).encode()),
        ]
        head = h11.Request(method=request.method, target=request.target, headers=headers)
        with _server_side():
            writer, upstream = await self._connect()
            writer.write(upstream.send(head) or b"")
        if self._client.their_state is h11.DONE:
            # This is the second try, and the first has read the end of the request.
            writer.write(upstream.send(h11.EndOfMessage()) or b"")
            return
        async with asyncio.timeout(REQUEST_S_MAX):
            while True:
                if self._client.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._writer.write(self._client.send(go_on) or b"")
                event = self._client.next_event()
                if event is h11.NEED_DATA:
                    self._client.receive_data(await self._reader.read(_PIECE_BYTES))
                    continue
                assert isinstance(event, h11.Data | h11.EndOfMessage)
                with _server_side():
                    writer.write(upstream.send(event) or b"")
                    await writer.drain()
                if isinstance(event, h11.EndOfMessage):
                    return

    async def _connect(self) -> tuple[asyncio.StreamWriter, h11.Connection]:
        """Return a connection to the server. The last one is used again if it is free."""
        if self._upstream is not None:
            reader, writer, upstream = self._upstream
            is_free = upstream.our_state is upstream.their_state is h11.DONE
            if is_free and not reader.at_eof():
                upstream.start_next_cycle()
                return writer, upstream
            self._drop_upstream()
        parts = urlsplit(self._server)
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port or 80, limit=_PIECE_BYTES
            )
        upstream = h11.Connection(h11.CLIENT)
        self._upstream = (reader, writer, upstream)
        return writer, upstream

    async def _send_answer(self) -> None:
        assert self._upstream is not None
        reader, _, upstream = self._upstream
        gone = asyncio.ensure_future(self._watch_client())
        try:
            while True:
                with _server_side():
                    event = upstream.next_event()
                    if event is h11.NEED_DATA:
                        async with asyncio.timeout(_ANSWER_S):
                            upstream.receive_data(await _read_unless(reader, gone))
                        continue
                if isinstance(event, h11.InformationalResponse):
                    continue
                if not isinstance(event, h11.Response | h11.Data | h11.EndOfMessage):
                    raise _ServerAway("it closed the connection")
                if isinstance(event, h11.Response):
                    kept = [each for each in event.headers if each[0] not in _NOT_FORWARDED]
                    event = h11.Response(
                        status_code=event.status_code, headers=kept, reason=event.reason
                    )
                self._writer.write(self._client.send(event) or b"")
                await self._writer.drain()
                if isinstance(event, h11.EndOfMessage):
                    return
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)

    async def _watch_client(self) -> None:
        """Return when the client has gone. What it sends meanwhile is its next request."""
        while self._ahead < _AHEAD_BYTES_MAX:
            piece = await self._reader.read(_PIECE_BYTES)
            self._client.receive_data(piece)
            if not piece:
                return
            self._ahead += len(piece)
        await asyncio.Event().wait()

    async def _refuse(self, status: int, text: str) -> None:
        """Answer with an error, and end the connection."""
        if self._client.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = error(status, text).body
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
            *([("retry-after", "1")] if status == _AWAY else []),
        ]
        response = h11.Response(status_code=status, headers=headers)
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self._writer.write(self._client.send(event) or b"")
        await self._writer.drain()

    def _drop_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream[1].close()
            self._upstream = None


class _ServerAway(Exception):
    """The server cannot be reached, or gave no whole answer."""


class _ClientGone(Exception):
    """The client closed its connection before it had the answer."""


@contextlib.contextmanager
def _server_side() -> Iterator[None]:
    """Raise _ServerAway for what goes wrong between the proxy and the server."""
    try:
        yield
    except (OSError, TimeoutError, h11.ProtocolError) as problem:
        raise _ServerAway(str(problem) or type(problem).__name__) from problem


async def _read_unless(reader: asyncio.StreamReader, gone: asyncio.Future[None]) -> bytes:
    """Return the next bytes of the server. Raises _ClientGone if the client has gone."""
    piece = asyncio.ensure_future(reader.read(_PIECE_BYTES))
    try:
        await asyncio.wait((piece, gone), return_when=asyncio.FIRST_COMPLETED)
        if not piece.done():
            raise _ClientGone
        return piece.result()
    finally:
        piece.cancel()


async def _open_listener(network: Network) -> socket.socket:
    try:
        if not network.namespace:
            return _bound(network)
        # Only this thread is in the namespace, and it ends here.
        with ThreadPoolExecutor(1) as pool:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(pool, _in_namespace, network)
    except OSError as problem:
        host, port = network.listen
        where = f" in the namespace {network.namespace}" if network.namespace else ""
        raise ProxyError(
            f"network {network.name}: cannot listen at {host}:{port}{where}: {problem.strerror}"
        ) from problem


def _in_namespace(network: Network) -> socket.socket:
    name = network.namespace
    descriptor = os.open(name if "/" in name else f"{_NETNS_FOLDER}/{name}", os.O_RDONLY)
    try:
        # os.setns is new in Python 3.12.
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(descriptor, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)
    return _bound(network)


def _bound(network: Network) -> socket.socket:
    host, _ = network.listen
    is_six = ":" in host
    listener = socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The address may be given to the namespace later.
        level, option = (
            (socket.IPPROTO_IPV6, _IPV6_FREEBIND) if is_six else (socket.IPPROTO_IP, _IP_FREEBIND)
        )
        listener.setsockopt(level, option, 1)
        listener.bind(network.listen)
        listener.listen(1024)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
