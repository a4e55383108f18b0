"""One kept connection for callers that block. Proxies are never asked: metadata is local."""

import contextlib
import socket
import threading
import time

from fairwarning.client.flow import Request, Response
from fairwarning.client.wire import CONNECT_S_MAX, READ_BYTES, Address, Broken, Exchange, TimedOut


class BlockingLink:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._socket: socket.socket | None = None
        self._turn = threading.Lock()

    def ask(self, request: Request) -> Response:
        """Raises Broken. A connection that died while it was idle is replaced once."""
        with self._turn:
            was_idle = self._socket is not None
            try:
                return self._ask(request)
            except Broken as problem:
                self.close()
                if not was_idle or isinstance(problem, TimedOut):
                    raise
            try:
                return self._ask(request)
            except Broken:
                self.close()
                raise

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _ask(self, request: Request) -> Response:
        ends_s = time.monotonic() + request.timeout_s
        exchange = Exchange(self.address, request)
        try:
            if self._socket is None:
                self._socket = socket.create_connection(
                    (self.address.host, self.address.port),
                    timeout=min(request.timeout_s, CONNECT_S_MAX),
                )
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(request.timeout_s)
            self._socket.sendall(exchange.to_send)
            while True:
                self._socket.settimeout(max(0.001, ends_s - time.monotonic()))
                response = exchange.feed(self._socket.recv(READ_BYTES))
                if response is not None:
                    break
        except TimeoutError:
            raise TimedOut(f"{self.address.url} did not answer in time") from None
        except OSError as problem:
            raise Broken(f"{self.address.url} cannot be reached: {problem}") from None
        if not exchange.keeps_alive:
            self.close()
        return response
