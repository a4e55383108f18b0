"""One kept connection for callers with an event loop."""

import asyncio
from typing import cast

from fairwarning.client.flow import Request, Response
from fairwarning.client.http import CONNECT_S_MAX, Address, Broken, Exchange, TimedOut


class Pipe(asyncio.BufferedProtocol):
    def __init__(self, url: str) -> None:
        self._url = url
        self._buffer = bytearray(BUFFER_BYTES)
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._answer: asyncio.Future[Response] | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, exchange: Exchange, timeout_s: float) -> Response:
        """Raises Broken. Only one at a time, and only while it is open."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response] = loop.create_future()
        self._answer = answer
        self._exchange = exchange
        timer = loop.call_later(timeout_s, self._give_up)
        try:
            self._transport.write(exchange.to_send)
            return await answer
        finally:
            timer.cancel()
            self._answer = self._exchange = None

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
            # Nobody asked: whatever it is, the next answer must not be mistaken for it.
            self.close()
            return
        try:
            response = self._exchange.feed(data)
        except Broken as problem:
            self._fail(problem)
            return
        if response is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(response)

    def _give_up(self) -> None:
        self._fail(TimedOut(f"{self._url} did not answer in time"))

    def _fail(self, problem: Broken) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(problem)


class AsyncLink:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._pipe: Pipe | None = None
        self._turn = asyncio.Lock()
        self._closings = 0

    async def ask(self, request: Request) -> Response:
        """Raises Broken. A connection that died while it was idle is replaced once."""
        async with self._turn:
            pipe, closings = self._pipe, self._closings
            if pipe is not None and pipe.is_open:
                try:
                    return await self._ask(pipe, request)
                except TimedOut:
                    raise
                except Broken:
                    if self._closings != closings:
                        raise
            return await self._ask(await self._connect(), request)

    async def close(self) -> None:
        """Another task may be at a question; that one is Broken, at once, and not asked again.
        The next question makes a new connection."""
        self._closings += 1
        self._disconnect()

    def _disconnect(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()

    async def _ask(self, pipe: Pipe, request: Request) -> Response:
        exchange = Exchange(self.address, request)
        try:
            return await pipe.ask(exchange, request.timeout_s)
        finally:
            # Also when we are cancelled: half an answer may be on its way, and nobody could tell
            # whose it is.
            if not exchange.keeps_alive:
                self._disconnect()

    async def _connect(self) -> Pipe:
        self._disconnect()
        loop, address = asyncio.get_running_loop(), self.address
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                _, pipe = await loop.create_connection(
                    lambda: Pipe(address.url), address.host, address.port
                )
        except TimeoutError:
            raise TimedOut(f"{address.url} did not answer in time") from None
        except OSError as problem:
            raise Broken(f"{address.url} cannot be reached: {problem}") from None
        self._pipe = pipe
        return pipe


# The bytes of one connection: an exchange at a time, read into a buffer that is made once.
BUFFER_BYTES = 16 * 1024
