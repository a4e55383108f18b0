"""Sends HTTP requests over plain sockets, so that a caller can break off in the middle."""

import asyncio
import contextlib
from typing import NamedTuple
from urllib.parse import urlsplit

HEAD_BYTES_MAX = 64 * 1024  # Larger than any head of our server.


class NoAnswer(Exception):
    """The server refused or closed the connection, or did not answer in time."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """A connection to a server. With `is_kept`, the next request to that server uses it again."""

    def __init__(self, *, is_kept: bool) -> None:
        self._is_kept = is_kept
        self._url = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self,
        url: str,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes = b"",
        *,
        within_s: float,
    ) -> Answer:
        """Sends a request and returns the answer. Raises NoAnswer if none comes in `within_s`."""
        whole = request_bytes(url, method, path, headers, body, is_kept=self._is_kept)
        if url != self._url:
            self.close()
        is_over = True
        try:
            async with asyncio.timeout(within_s):
                if self._streams is None:
                    self._url, self._streams = url, await _connect(url)
                reader, writer = self._streams
                writer.write(whole)
                await writer.drain()
                answer = await _read(reader)
            is_over = not self._is_kept or answer.headers.get("connection") == "close"
        except (OSError, asyncio.IncompleteReadError, ValueError) as problem:
            raise NoAnswer(str(problem) or type(problem).__name__) from None
        else:
            return answer
        finally:
            if is_over:
                self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def send_and_leave(url: str, whole: bytes) -> None:
    """Sends these bytes and closes the connection without waiting for the answer."""
    with contextlib.suppress(OSError):
        _, writer = await _connect(url)
        writer.write(whole)
        await writer.drain()
        writer.close()


def request_bytes(
    url: str, method: str, path: str, headers: dict[str, str], body: bytes, *, is_kept: bool
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(url).netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    if not is_kept:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port, limit=HEAD_BYTES_MAX)


async def _read(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    status = int(first.split()[1])
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Answer(status, headers, body)
