"""The server accepts connections. A known poll on a new connection is answered without a transport.

Most clients open a connection for every poll. With TCP_DEFER_ACCEPT, a connection is ready only
when its request is there, so such a poll needs only an accept, a read, a write and a close. For
anything else, the socket becomes an ordinary transport with a `Connection`.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Callable, Sequence

from fairwarning.metadata.connection import Connection
from fairwarning.metadata.endpoint_state import EndpointState
from fairwarning.metadata.identity import canonical, is_loopback
from fairwarning.metadata.request_watchers import RefusalWatcher, Watcher
from fairwarning.metadata.settings import CONNECTIONS_PER_ADDRESS_MAX, REMEMBERED_BYTES_MAX

BACKLOG = 4_096
"""How many connections may wait to be accepted, such as those of a fleet that polls at once."""
_ACCEPTS_AT_ONCE = 64
"""The most connections that are accepted before open connections get their turn."""
_FULL_ROUNDS = 16
"""After so many full rounds in a row, twice as many connections are accepted in a round."""
# These are plain integers, because combining the enums of `socket` takes longer than the call.
_STREAM = int(socket.SOCK_STREAM)
_AT_ONCE = int(socket.MSG_DONTWAIT)
_AT_ONCE_WITH_THE_END = int(socket.MSG_DONTWAIT | socket.MSG_MORE)
_FIRST_BYTES = 479
"""How much is read first. Python's own allocator, which is faster, has no longer bytes objects."""
_REST_BYTES = REMEMBERED_BYTES_MAX + 1 - _FIRST_BYTES  # One more shows that it is too long.
_DEFER_S = 5
"""How long the kernel waits for a request before it hands over a connection without one."""
_SWEEP_S = 1.0
"""The time between two sweeps for silent connections."""
SAMPLE_S = 5.0
"""The time between two counts of polls. For 100,000 instances, a count takes some 10 ms."""
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_OUT_OF_FILES_PAUSE_S = 0.2
"""The pause before accepting again after an error, such as too few file descriptors."""
_Peer = tuple[str, int, int, int]
"""The host, port, flow and zone of an IPv6 client. An IPv4 client has only host and port."""
_log = logging.getLogger(__name__)


def open_socket(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Return a bound socket that does not listen yet. Raises OSError. With `is_shared`, others may
    be bound to the same address, and the kernel chooses one for each connection.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_shared:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_DEFER_ACCEPT"):
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _DEFER_S)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise OSError(error.errno, f"{host}:{port}: {error.strerror}") from error
    opened.setblocking(False)
    return opened


def url_of(opened: socket.socket) -> str:
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Listener:
    """Accepts the connections to one address."""

    def __init__(self, state: EndpointState, opened: socket.socket) -> None:
        self._state = state
        # These save a lookup for each known poll in `_serve`.
        self._known_polls = state.known_polls
        self._by_address = state.by_address
        self._ready = state.ready
        self._socket = opened
        self._family = int(opened.family)
        self._is_v6 = opened.family == socket.AF_INET6
        self._accept: Callable[[], tuple[int, _Peer]] = self._socket._accept  # type: ignore[attr-defined]
        self._accepts = 1
        self._full_rounds = 0
        # This is the bound address and not the given host, because `localhost` is loopback, too.
        self._is_loopback = is_loopback(self._socket.getsockname()[0])
        state.known_polls.has_loopback |= self._is_loopback
        self._adopting: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that the listener is bound to."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def url(self) -> str:
        return url_of(self._socket)

    def start(self) -> None:
        self._socket.listen(BACKLOG)
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept_all)

    def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    async def settle(self) -> None:
        """Wait until all accepted sockets have become connections."""
        await asyncio.gather(*self._adopting, return_exceptions=True)

    def _accept_all(self) -> None:
        """Accept about as many connections as were there last time.

        One too many costs a failed call, and one too few costs a turn of the event loop.
        `socket.SocketType` is the C type of a socket, without Python's wrapper. These two measures
        make a known poll on a new connection a third cheaper.
        """
        accept, make, serve, family = self._accept, socket.SocketType, self._serve, self._family
        try:
            for _ in range(self._accepts):
                fd, peer = accept()
                serve(make(family, _STREAM, 0, fd), peer)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            self._accepts, self._full_rounds = max(1, self._accepts // 2), 0
        except OSError as error:
            self._pause(error)
        else:
            self._full_rounds += 1
            if self._full_rounds >= _FULL_ROUNDS:
                self._accepts, self._full_rounds = min(_ACCEPTS_AT_ONCE, self._accepts * 2), 0

    def _serve(self, client: socket.SocketType, peer: _Peer) -> None:
        """Answer a known poll at once, or make a connection from the socket.

        This is one long function, because calls would make a known poll slower. It answers only
        polls that certainly need nothing but memory, because the rate limit would count others
        twice.
        """
        address = canonical(peer[0], peer[3]) if self._is_v6 else peer[0]
        known, data, ready, sent = self._known_polls, b"", None, 0
        try:
            data = client.recv(_FIRST_BYTES, _AT_ONCE)
            if len(data) == _FIRST_BYTES:
                data += client.recv(_REST_BYTES, _AT_ONCE)
            request = known.last_request if data == known.last_bytes else known.find_closing(data)
            if request is not None:
                member = self._by_address(address)
                if member is not None and member.view.activated_ms is not None:
                    ready = self._ready(request, member, True)
                    if ready is not None:
                        # The kernel keeps this until the close, so that response and end are one
                        # packet. This saves a quarter of the cost of the poll.
                        sent = client.send(ready, _AT_ONCE_WITH_THE_END)
                        if sent == len(ready):
                            client.close()
                            return
        except BlockingIOError:
            pass
        except OSError:
            client.close()
            return
        if ready is None:
            self._adopt(client, address, first_bytes=data)
        else:
            self._adopt(client, address, last_bytes=ready[sent:])

    def _pause(self, error: OSError) -> None:
        """Stop accepting for a moment, because without file descriptors a retry would fail, too."""
        if error.errno not in _OUT_OF_FILES:
            _log.warning("cannot accept: %s", error)
        loop, fd = asyncio.get_running_loop(), self._socket.fileno()
        loop.remove_reader(fd)
        loop.call_later(_OUT_OF_FILES_PAUSE_S, self._resume, fd)

    def _resume(self, fd: int) -> None:
        if self._socket.fileno() == fd:
            asyncio.get_running_loop().add_reader(fd, self._accept_all)

    def _adopt(
        self,
        client: socket.SocketType,
        address: str,
        *,
        first_bytes: bytes = b"",
        last_bytes: bytes = b"",
    ) -> None:
        """Make a connection from the socket, or close it if its address has too many open."""
        own = socket.socket(self._family, socket.SOCK_STREAM, 0, client.detach())
        on_loopback = self._is_loopback and is_loopback(address)
        may_have_many = on_loopback or address in self._state.rules.proxy_addresses
        connections = self._state.connections
        if not may_have_many and connections.count(address) >= CONNECTIONS_PER_ADDRESS_MAX:
            own.close()
            return
        connections.reserve(address)
        own.setblocking(False)

        def make() -> Connection:
            return Connection(
                self._state,
                address,
                on_loopback=on_loopback,
                first_bytes=first_bytes,
                last_bytes=last_bytes,
            )

        task = asyncio.create_task(self._connect(make, own, address))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _connect(
        self, make: Callable[[], Connection], client: socket.socket, address: str
    ) -> None:
        try:
            await self._state.fair_share.wait(address)
            await asyncio.get_running_loop().connect_accepted_socket(make, client)
        except OSError:
            client.close()
            self._state.connections.release(address)


class MetadataServer:
    """All listeners of the endpoint, and the task that expires silent connections."""

    def __init__(self, state: EndpointState, opened: Sequence[socket.socket]) -> None:
        """`opened` are bound sockets. They belong to the server from now on."""
        self._state = state
        self._listeners = [Listener(state, each) for each in opened]
        self._sweeper: asyncio.Task[None] | None = None
        self.on_sample: Callable[[float, float], None] = state.views.sample
        """A function that counts polls. It gets the time and the seconds since the last count."""

    @property
    def urls(self) -> list[str]:
        return [listener.url for listener in self._listeners]

    def count_answers(self) -> dict[str, int]:
        """Return how many responses were sent since the start, under the name of this process. It
        is empty, because there is only one.
        """
        return {"": self._state.polls.varying.count}

    def watch(self, watcher: Watcher, *, hears_refused: bool = False) -> None:
        """Call the watcher for every request from now on. Then every poll is parsed."""
        self._state.watch(watcher, hears_refused=hears_refused)

    def unwatch(self, watcher: Watcher) -> None:
        self._state.unwatch(watcher)

    def watch_refusals(self, watcher: RefusalWatcher) -> None:
        """Call the watcher for every request that is refused as malformed from now on."""
        self._state.refusal_watchers.append(watcher)

    def set_reachable(self, is_reachable: bool) -> None:
        """Refuse all connections and cut the open ones, or accept them at the same addresses again.

        Tests use this. It must not be called twice with the same value.
        """
        if is_reachable:
            for listener in self._listeners:
                listener.start()
            return
        addresses = [listener.address for listener in self._listeners]
        self._close_listeners()
        # A socket that is bound and does not listen refuses connections, and keeps its port.
        self._listeners = [Listener(self._state, open_socket(*each)) for each in addresses]
        for connection in [*self._state.connections]:
            connection.expire()

    def start(self) -> None:
        for listener in self._listeners:
            listener.start()
        self._sweeper = asyncio.create_task(self._sweep())

    async def drain(self, within_s: float) -> None:
        """Accept no more connections, and return when the last one has ended or the time is over.

        Each connection ends with its next response, so that no client loses a request.
        """
        await self._end_listeners()
        self._state.end_soon()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._state.connections.emptied()

    async def stop(self) -> None:
        await self._end_listeners()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self._state.close()

    async def _end_listeners(self) -> None:
        listeners = self._listeners
        self._close_listeners()
        for listener in listeners:
            await listener.settle()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.stop()
        self._listeners = []

    async def _sweep(self) -> None:
        sampled_s = time.monotonic()
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = time.monotonic()
            self._state.freshness.look()
            for connection in list(self._state.connections):
                connection.sweep(now)
            if now - sampled_s >= SAMPLE_S:
                now_s = self._state.handlers.now() / 1000
                self.on_sample(now_s, now - sampled_s)
                sampled_s = now
