"""Sends one HTTP request over an open connection and reads its response. Actions share this."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import h11

ANSWER_BYTES_MAX = 1024 * 1024  # The actions need a status, or a short document.
CLOSE_S_MAX = 1.0  # The answer is complete, so a slow end of TLS is not worth more.
_READ_BYTES = 65_536  # The usual size of a pipe's or a socket's buffer.
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    method: str
    target: str
    headers: Mapping[str, str]
    """The headers with `Host`. The length of the body and the end of the connection are added."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes
    """The body, up to a limit."""


async def exchange(streams: Streams, outgoing: Outgoing) -> Answer:
    """Send the request, read its response, and close the connection.

    Raises OSError if the connection breaks, and h11's exceptions if either side does not speak
    HTTP. The connection is closed in any case.
    """
    reader, writer = streams
    is_closed = False
    try:
        answer = await _ask(reader, writer, outgoing)
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_S_MAX):
                await writer.wait_closed()
                is_closed = True
        return answer
    finally:
        # Python 3.11.2, which Debian 12 has, breaks on aborting a TLS transport that is closed.
        if not is_closed:
            writer.transport.abort()


async def read_head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Response:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Response):
            return event
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("closed before the answer")


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, outgoing: Outgoing
) -> Answer:
    connection = h11.Connection(our_role=h11.CLIENT)
    sent = {**outgoing.headers, "Connection": "close"}
    if outgoing.body or outgoing.method in ("POST", "PUT", "PATCH"):
        sent["Content-Length"] = str(len(outgoing.body))
    head = h11.Request(method=outgoing.method, target=outgoing.target, headers=list(sent.items()))
    for event in (head, h11.Data(data=outgoing.body), h11.EndOfMessage()):
        writer.write(connection.send(event) or b"")
    await writer.drain()
    answer = await read_head(connection, reader)
    return Answer(status=answer.status_code, body=await _body(connection, reader))


async def _body(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """Read the response to its end, up to a limit, because some servers stop their work if the
    client disconnects.
    """
    parts: list[bytes] = []
    size = 0
    while size < ANSWER_BYTES_MAX:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            read = await reader.read(_READ_BYTES)
            size += len(read)
            connection.receive_data(read)
        elif isinstance(event, h11.Data):
            parts.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            break
    return b"".join(parts)
