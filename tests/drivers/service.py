"""A web service that does impacts, on a free port, and remembers what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Reply = tuple[int, str]


@dataclass(slots=True)
class Service:
    replies: list[Reply]
    """One for each request, in order; after the last one it stays silent."""
    url: str = ""
    orders: list[dict[str, Any]] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def actions(self) -> list[str]:
        return [each["action"] for each in self.orders]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[1:-1]
            head = {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}
            body = await reader.readexactly(int(head["content-length"]))
            self.heads.append(head)
            self.bodies.append(body)
            self.orders.append(json.loads(body))
            if self.replies:
                status, text = self.replies.pop(0)
                elsewhere = "Location: /elsewhere\r\n" if 300 <= status < 400 else ""
                start = f"HTTP/1.1 {status} X\r\n{elsewhere}Content-Length: {len(text)}\r\n\r\n"
                writer.write(f"{start}{text}".encode())
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def service(*replies: Reply) -> AsyncIterator[Service]:
    it = Service(replies=list(replies))
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.url = f"http://me:hunter2@127.0.0.1:{server.sockets[0].getsockname()[1]}/impacts?k=hunter2"
    try:
        yield it
    finally:
        server.close()


def states(*words: str) -> Iterable[Reply]:
    return [(200, json.dumps({"state": word})) for word in words]
