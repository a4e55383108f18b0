"""Serves probes, metrics and the requests of other agents over a minimal HTTP."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from urllib.parse import parse_qs

from fairwarning.agent.metrics import Metrics

READ_S_MAX = 5.0  # A probe sends its request at once; a silent client must not stay.
HEAD_BYTES_MAX = 8 * 1024  # Far more than the head of a probe or of another agent's request.
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
            503: "Service Unavailable"}  # fmt: skip
_TEXT = "text/plain; charset=utf-8"


class CannotListen(Exception):
    """The address cannot be used. The message says what to do."""


class Listener:
    def __init__(self, metrics: Metrics, is_drained: Callable[[str], list[str]]) -> None:
        """`is_drained` takes an event id. It returns a list with the name of this VM if it is ready
        for the event, and else an empty list.
        """
        self._metrics = metrics
        self._is_drained = is_drained
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Begin to listen. Raises CannotListen if the address cannot be used."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)
        except OSError as problem:
            raise CannotListen(
                f"cannot listen on {host}:{port}: {problem.strerror}; set `listen` in the config"
            ) from None
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_S_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                status, kind, body = self.answer(head.split(b"\r\n", 1)[0].decode("latin-1"))
                writer.write(_response(status, kind, body))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def answer(self, line: str) -> tuple[int, str, str]:
        """Return the status, content type and body for a request with this first line."""
        method, _, rest = line.partition(" ")
        target, _, query = rest.rpartition(" ")[0].partition("?")
        if method not in ("GET", "HEAD"):
            return 405, _TEXT, "only GET\n"
        match target:
            case "/healthz":
                return 200, _TEXT, "ok\n"
            case "/readyz":
                why = self._metrics.not_ready
                return (503, _TEXT, f"{why}\n") if why else (200, _TEXT, "ok\n")
            case "/metrics":
                return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.text()
            case "/drained":
                return self._drained(query)
            case _:
                return 404, _TEXT, "here are /healthz, /readyz, /metrics and /drained\n"

    def _drained(self, query: str) -> tuple[int, str, str]:
        ids = parse_qs(query).get("EventId", [])
        if len(ids) != 1:
            return 400, _TEXT, "write /drained?EventId=ID\n"
        shown = {"EventId": ids[0].upper(), "Drained": self._is_drained(ids[0].upper())}
        return 200, "application/json", json.dumps(shown)


def _response(status: int, kind: str, body: str) -> bytes:
    content = body.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content
