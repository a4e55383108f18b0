"""Connections that are kept open between requests, for callers with an event loop and for callers
that block. They never use a proxy, because the metadata service is local.
"""

import asyncio
import contextlib
import socket
import threading
import time
from typing import cast

from fairwarning.client.http import CONNECT_S_MAX, READ_BYTES, Address, Broken, Exchange, TimedOut
from fairwarning.client.polling import Request, Response

BUFFER_BYTES = 16 * 1024
"""The size of a connection's read buffer. A document of many events fits. Each connection creates
one and reuses it.
"""


class AsyncConnection:
    """Sends one request at a time. While one is under way, other tasks wait for their turn."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._open: _Transport | None = None
        self._lock = asyncio.Lock()
        self._closings = 0

    async def ask(self, request: Request) -> Response:
        """Send a request and return its response.

        If the open connection turns out to be dead, the request is sent once more on a new one.
        Raises Broken if there is no valid response, and TimedOut if none comes in time.
        """
        async with self._lock:
            transport, closings = self._open, self._closings
            if transport is not None and transport.is_open:
                try:
                    return await self._ask(transport, request)
                except TimedOut:
                    raise
                except Broken:
                    if self._closings != closings:
                        raise
            return await self._ask(await self._connect(), request)

    async def close(self) -> None:
        """Close the connection. The next request opens a new one.

        If another task waits for a response, its `ask` raises Broken at once and does not repeat
        the request.
        """
        self._closings += 1
        self._disconnect()

    def _disconnect(self) -> None:
        transport, self._open = self._open, None
        if transport is not None:
            transport.close()

    async def _ask(self, transport: "_Transport", request: Request) -> Response:
        exchange = Exchange(self.address, request)
        try:
            return await transport.ask(exchange, request.timeout_s)
        finally:
            # This also runs when the task is cancelled. Then half a response may be on its way,
            # and the next request must not read it as its own response.
            if not exchange.keeps_alive:
                self._disconnect()

    async def _connect(self) -> "_Transport":
        self._disconnect()
        loop, address = asyncio.get_running_loop(), self.address
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                _, transport = await loop.create_connection(
                    lambda: _Transport(address.url), address.host, address.port
                )
        except TimeoutError:
            raise TimedOut(f"{address.url} did not answer in time") from None
        except OSError as problem:
            raise Broken(f"{address.url} cannot be reached: {problem}") from None
        self._open = transport
        return transport


class _Transport(asyncio.BufferedProtocol):
    """One TCP connection. It sends and receives the bytes of one exchange at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._buffer = bytearray(BUFFER_BYTES)
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._response: asyncio.Future[Response] | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, exchange: Exchange, timeout_s: float) -> Response:
        """Send the request of an exchange and return the response. Raises Broken or TimedOut.

        Call this only while the connection is open and no other exchange is under way.
        """
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        response: asyncio.Future[Response] = loop.create_future()
        self._response = response
        self._exchange = exchange
        timer = loop.call_later(timeout_s, self._give_up)
        try:
            self._transport.write(exchange.to_send)
            return await response
        finally:
            timer.cancel()
            self._response = self._exchange = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._take(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> None:
        self._take(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(Broken(f"{self._url} cannot be reached: {exc or 'the connection was cut off'}"))

    def _take(self, data: bytes) -> None:
        if self._exchange is None:
            # No request is under way, so these bytes must not count as the next response.
            self.close()
            return
        try:
            response = self._exchange.feed(data)
        except Broken as problem:
            self._fail(problem)
            return
        if response is not None and self._response is not None and not self._response.done():
            self._response.set_result(response)

    def _give_up(self) -> None:
        self._fail(TimedOut(f"{self._url} did not answer in time"))

    def _fail(self, problem: Broken) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(problem)


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
