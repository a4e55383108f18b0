"""A TCP port in front of a test's PostgreSQL, which can be cut off or fall silent."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TcpProxy:
    def __init__(self, target: str) -> None:
        """`target` is the Unix socket to which everything is forwarded."""
        self._target = target
        self._server: asyncio.Server | None = None
        self._port = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def port(self) -> int:
        return self._port

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuses new connections, and ends the open ones. `open` lets them in again."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def fall_silent(self) -> None:
        """Takes connections and bytes, and forwards nothing more, as a network that drops all."""
        self._flows.clear()

    def speak(self) -> None:
        """Forwards again, also what has been kept back."""
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            there, back = await asyncio.open_unix_connection(self._target)
            self._writers.add(back)
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            finally:
                back.transport.abort()
                self._writers.discard(back)
        except OSError:
            return
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        await self._flows.wait()
        raise ConnectionResetError("one side has closed")


@asynccontextmanager
async def proxied(dsn: str) -> AsyncIterator[tuple[TcpProxy, str]]:
    """Gives a proxy in front of the server of this DSN, and the store's URL through it."""
    parts = dict(pair.split("=") for pair in dsn.split())
    proxy = TcpProxy(f"{parts['host']}/.s.PGSQL.5432")
    await proxy.open()
    try:
        yield proxy, f"postgresql://{parts['user']}@127.0.0.1:{proxy.port}/{parts['dbname']}"
    finally:
        proxy.speak()
        with contextlib.suppress(OSError):
            await proxy.cut()
