"""A real HTTP server on a free port that answers as a test wants and remembers what came."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

HANG = 0
"""Instead of a status: take the request and never answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """`scheduled`, of `com.fairwarning.event.scheduled.v1`."""
        return str(self.json["type"].split(".")[3])


@dataclass(slots=True)
class Receiver:
    url: str = ""
    port: int = 0
    answer: Callable[[Request], int] = lambda _: 200
    requests: list[Request] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def kinds(self) -> list[str]:
        return [each.kind for each in self.requests]

    async def has(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await _head(reader)) is not None:
                body = await reader.readexactly(int(head.get("content-length", "0")))
                request = Request(headers=head, body=body)
                status = self.answer(request)
                async with self._changed:
                    self.requests.append(request)
                    self._changed.notify_all()
                if status == HANG:
                    await reader.read()
                    return
                elsewhere = "Location: /elsewhere\r\n" if 300 <= status < 400 else ""
                answer = f"HTTP/1.1 {status} X\r\n{elsewhere}Content-Length: 0\r\n\r\n"
                writer.write(answer.encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


async def _head(reader: asyncio.StreamReader) -> dict[str, str] | None:
    if not await reader.readline():
        return None
    head: dict[str, str] = {}
    while (line := (await reader.readline()).decode().strip()) != "":
        name, _, value = line.partition(":")
        head[name.lower()] = value.strip()
    return head


@asynccontextmanager
async def receiving(answer: Callable[[Request], int] = lambda _: 200) -> AsyncIterator[Receiver]:
    receiver = Receiver(answer=answer)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    receiver.url = f"http://127.0.0.1:{receiver.port}/hook"
    try:
        yield receiver
    finally:
        server.close()
