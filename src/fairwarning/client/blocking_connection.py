"""A connection that is kept open between requests, for callers that block.

It never uses a proxy, because the metadata service is local.
"""

import contextlib
import socket
import threading
import time

from fairwarning.client.flow import Request, Response
from fairwarning.client.http import (
    CONNECT_S_MAX,
    READ_BYTES,
    Address,
    Broken,
    Exchange,
    TimedOut,
)


class BlockingConnection:
    """Sends one request at a time. While one is under way, other threads wait for their turn."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._closings = 0

    def ask(self, request: Request) -> Response:
        """Send a request and return its response.

        If the open connection turns out to be dead, the request is sent once more on a new one.
        Raises Broken if there is no valid response, and TimedOut if none comes in time.
        """
        with self._lock:
            was_idle, closings = self._socket is not None, self._closings
            try:
                return self._ask(request)
            except Broken as problem:
                self._disconnect()
                is_closed = self._closings != closings
                if not was_idle or is_closed or isinstance(problem, TimedOut):
                    raise
            try:
                return self._ask(request)
            except Broken:
                self._disconnect()
                raise

    def close(self) -> None:
        """Close the connection. The next request opens a new one.

        If another thread waits for a response, its `ask` raises Broken at once and does not repeat
        the request.
        """
        self._closings += 1
        self._disconnect()

    def _disconnect(self) -> None:
        closing, self._socket = self._socket, None
        if closing is not None:
            # `close` alone would not wake another thread that reads from the socket.
            with contextlib.suppress(OSError):
                closing.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                closing.close()

    def _ask(self, request: Request) -> Response:
        ends_s = time.monotonic() + request.timeout_s
        exchange = Exchange(self.address, request)
        try:
            connection = self._socket or self._connect(min(request.timeout_s, CONNECT_S_MAX))
            connection.settimeout(request.timeout_s)
            connection.sendall(exchange.to_send)
            while True:
                connection.settimeout(max(0.001, ends_s - time.monotonic()))
                response = exchange.feed(connection.recv(READ_BYTES))
                if response is not None:
                    break
        except TimeoutError:
            raise TimedOut(f"{self.address.url} did not answer in time") from None
        except OSError as problem:
            raise Broken(f"{self.address.url} cannot be reached: {problem}") from None
        if not exchange.keeps_alive:
            self._disconnect()
        return response

    def _connect(self, timeout_s: float) -> socket.socket:
        connection = socket.create_connection(
            (self.address.host, self.address.port), timeout=timeout_s
        )
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        return connection
