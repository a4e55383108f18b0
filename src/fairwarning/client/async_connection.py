"""A connection that is kept open between requests, for callers with an event loop."""

import asyncio
from typing import cast

from fairwarning.client.flow import Request, Response
from fairwarning.client.http import CONNECT_S_MAX, Address, Broken, Exchange, TimedOut

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
