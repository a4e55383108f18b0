"""Accepts connections of the control plane, and has each counted before it costs anything."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable

from fairwarning.control.connections import Connections, Entry
from fairwarning.control.http import LimitedHttp

BACKLOG = 2_048
HANDSHAKE_S_MAX = 10.0
_ACCEPTS_AT_ONCE = 64
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_S = 0.2
_log = logging.getLogger(__name__)


class Acceptor:
    """Of one listener. uvicorn takes it for an asyncio server."""

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
            # Accepting again at once would only burn the processor.
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
