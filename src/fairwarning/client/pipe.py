"""The bytes of one connection: an exchange at a time, read into a buffer that is made once.

asyncio's own streams take a quarter of a megabyte from the system for every read and wake a
task twice; a poller that idles for weeks would do little else.
"""

import asyncio
from typing import cast

from fairwarning.client.flow import Response
from fairwarning.client.wire import Broken, Exchange, TimedOut

BUFFER_BYTES = 16 * 1024


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
