"""Serves the control plane on a socket, in the event loop that is already running."""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import uvicorn

from fairwarning.operator_api.connection_limits import Connections, Entry
from fairwarning.operator_api.http_protocol import LimitedHttp

STOP_S_MAX = 3  # Answers under way are sent by then; a restart should be quick.
TICK_S = 1  # uvicorn counts on a tick each second, for example for its Date header.


class Tls(NamedTuple):
    certificate: Path
    key: Path


class BadCertificate(Exception):
    """The certificate or its key cannot be used."""


class _Server(uvicorn.Server):
    """A uvicorn server that handles no signals, and stops at once after `exit_soon`."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections
        self.servers: list[Acceptor] = []  # type: ignore[assignment]
        self.is_up = asyncio.Event()
        self._told = asyncio.Event()

    def exit_soon(self) -> None:
        self.should_exit = True
        self._told.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start an `Acceptor` for each socket, to count connections before their TLS handshake."""
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()

        def make_protocol() -> LimitedHttp:
            return LimitedHttp(self.config, self.server_state, self.lifespan.state, loop)

        for listener in sockets or ():
            acceptor = Acceptor(listener, make_protocol, self.config.ssl, self._connections)
            acceptor.start()
            self.servers.append(acceptor)
        self.started = True
        self.is_up.set()

    async def main_loop(self) -> None:
        # The loop of uvicorn wakes ten times a second. This one wakes once, or at `exit_soon`.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop at once if no client is connected. The method of uvicorn always waits."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)


class ServedApp(Protocol):
    """What a server needs of an application: `asgi` answers, and `stop` ends its streams."""

    @property
    def asgi(self) -> Any: ...

    @property
    def connections(self) -> Connections: ...

    def stop(self) -> None: ...


class ControlServer:
    def __init__(self, app: ServedApp, listener: socket.socket, tls: Tls | None = None) -> None:
        """Prepare the server; `start` accepts connections, and `stop` closes the listener.

        Raises BadCertificate.
        """
        self._app = app
        self._socket = listener
        config = uvicorn.Config(
            app.asgi,
            http=LimitedHttp,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=STOP_S_MAX,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
        )
        try:
            config.load()
        except (ssl.SSLError, OSError) as problem:
            raise BadCertificate(
                f"the certificate and its key cannot be used ({problem}); "
                "give a PEM certificate and its PEM key without a passphrase"
            ) from problem
        self._server = _Server(config, app.connections)
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._running = asyncio.create_task(self._server.serve([self._socket]))
        up = asyncio.create_task(self._server.is_up.wait())
        await asyncio.wait({self._running, up}, return_when=asyncio.FIRST_COMPLETED)
        up.cancel()

    async def stop(self) -> None:
        self._app.stop()
        self._server.exit_soon()
        if self._running is not None:
            await self._running
        self._socket.close()


def url_of(listener: socket.socket, *, is_tls: bool) -> str:
    host, port = listener.getsockname()[:2]
    return f"http{'s' * is_tls}://{f'[{host}]' if ':' in host else host}:{port}"


def bound(host: str, port: int) -> socket.socket:
    """Return a bound socket that does not listen yet. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only on sockets that say that they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise OSError(problem.errno, f"{host}:{port}: {problem.strerror}") from problem
    listener.setblocking(False)
    return listener


BACKLOG = 2_048  # uvicorn's default.
HANDSHAKE_S_MAX = 10.0  # A handshake is two round trips, also over a slow line.
_ACCEPTS_AT_ONCE = 64  # Then other tasks of the event loop get their turn.
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_S = 0.2  # File descriptors become free when connections end; retrying sooner is in vain.
_log = logging.getLogger(__name__)


class Acceptor:
    """Accepts the connections of one listener, and counts each before its TLS handshake.

    uvicorn uses this object as an asyncio server.
    """

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], LimitedHttp],
        tls: ssl.SSLContext | None,
        connections: Connections,
    ) -> None:
        self._listener = listener
        self._make_protocol = make_protocol
        self._tls = tls
        self._connections = connections
        self._adopting: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def start(self) -> None:
        self._listener.listen(BACKLOG)
        self._resume()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            for task in self._adopting:
                task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._adopting, return_exceptions=True)

    def _accept_all(self) -> None:
        try:
            for _ in range(_ACCEPTS_AT_ONCE):
                client, peer = self._listener.accept()
                self._take(client, peer[0])
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _OUT_OF_FILES:
                _log.warning("cannot accept: %s", error)
            # Accepting again at once would fail again and only use the processor.
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listener.fileno())
            loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        if not self._is_closed:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._listener.fileno(), self._accept_all)

    def _take(self, client: socket.socket, address: str) -> None:
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        entry = self._connections.enter(address)
        task = asyncio.create_task(self._adopt(client, entry))
        entry.close = task.cancel
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, client: socket.socket, entry: Entry) -> None:
        protocol = self._make_protocol()
        protocol.enter(self._connections, entry)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_S_MAX if self._tls is not None else None,
            )
        except BaseException as error:
            self._connections.leave(entry)
            client.close()
            if not isinstance(error, OSError | asyncio.CancelledError):
                raise
