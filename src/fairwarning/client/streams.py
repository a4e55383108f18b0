"""One kept connection for callers with an event loop."""

import asyncio
import contextlib

from fairwarning.client.flow import Request, Response
from fairwarning.client.wire import CONNECT_S_MAX, READ_BYTES, Address, Broken, Exchange, TimedOut


class AsyncLink:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, request: Request) -> Response:
        """Raises Broken. A connection that died while it was idle is replaced once."""
        async with self._turn:
            was_idle = self._streams is not None
            try:
                return await self._ask(request)
            except Broken as problem:
                await self.close()
                if not was_idle or isinstance(problem, TimedOut):
                    raise
            try:
                return await self._ask(request)
            except Broken:
                await self.close()
                raise

    async def close(self) -> None:
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()
            with contextlib.suppress(OSError):
                await streams[1].wait_closed()

    async def _ask(self, request: Request) -> Response:
        exchange = Exchange(self.address, request)
        try:
            async with asyncio.timeout(request.timeout_s):
                response = await self._exchange(exchange)
        except TimeoutError:
            raise TimedOut(f"{self.address.url} did not answer in time") from None
        except OSError as problem:
            raise Broken(f"{self.address.url} cannot be reached: {problem}") from None
        except asyncio.CancelledError:
            # Half an answer may be on its way, and nobody could tell whose it is.
            self._drop()
            raise
        if not exchange.keeps_alive:
            await self.close()
        return response

    async def _exchange(self, exchange: Exchange) -> Response:
        if self._streams is None:
            async with asyncio.timeout(CONNECT_S_MAX):
                self._streams = await asyncio.open_connection(self.address.host, self.address.port)
        reader, writer = self._streams
        writer.write(exchange.to_send)
        await writer.drain()
        while True:
            response = exchange.feed(await reader.read(READ_BYTES))
            if response is not None:
                return response

    def _drop(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
