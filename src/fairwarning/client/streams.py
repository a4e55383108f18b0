"""One kept connection for callers with an event loop."""

import asyncio

from fairwarning.client.flow import Request, Response
from fairwarning.client.pipe import Pipe
from fairwarning.client.wire import CONNECT_S_MAX, Address, Broken, Exchange, TimedOut


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
