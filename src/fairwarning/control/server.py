"""The control plane on a socket, in the event loop that is already running."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import uvicorn

from fairwarning.control.acceptor import Acceptor
from fairwarning.control.app import App
from fairwarning.control.connections import Connections
from fairwarning.control.http import LimitedHttp

STOP_S_MAX = 3
TICK_S = 1


class Tls(NamedTuple):
    certificate: Path
    key: Path


class BadCertificate(Exception):
    """The certificate or its key cannot be used."""


class _Server(uvicorn.Server):
    """Leaves signals to the program that it is a part of, and stops as soon as it is told."""

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
        """uvicorn's own knows no connection before its TLS handshake is over."""
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
        # uvicorn looks ten times a second whether it should exit, and dates answers in between.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's own waits a while, whether or not there is anybody to wait for."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)


class ControlServer:
    def __init__(self, app: App, listener: socket.socket, tls: Tls | None = None) -> None:
        """Not yet accepting. The listener is closed when this stops. Raises BadCertificate."""
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
    """Bound, but not yet listening. Raises OSError if the address cannot be had."""
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
