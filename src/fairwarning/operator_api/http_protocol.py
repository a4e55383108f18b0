"""uvicorn's HTTP protocol with limits for heads, unread bodies, and pipelined requests."""

import asyncio
from typing import Any

import httptools
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable
from uvicorn._types import Scope as ASGIScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairwarning.operator_api.connection_limits import Connections, Entry
from fairwarning.operator_api.problems import MEDIA_TYPE, Problem

HEAD_BYTES_MAX = 64 * 1024  # Long search texts and large cookies fit.
PIECE_BYTES = 4 * 1024
"""How many bytes are parsed at once. This limits how many pipelined requests begin together."""
HEAD_S_MAX = 20
"""The longest wait for a complete head, after the connection or the last request."""
SPARE_HEAD_S_MAX = 2  # Connections for monitoring are few, so a silent one must go soon.
HEALTH = frozenset({b"/healthz", b"/readyz", b"/metrics"})
"""These paths are answered even if too many clients are connected."""
UNREAD_BYTES_MAX = 4 * 1024 * 1024  # The largest body that is accepted anywhere.
UNREAD_S_MAX = 60
"""How long a client may still send a body after its request has been answered."""


class LimitedHttp(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._unfed = bytearray()
        self._complaint: Problem | None = None
        self._connections: Connections
        self._entry: Entry
        self._is_in_head = True
        self._is_in_body = False
        self._passed_over = 0
        self._patience: asyncio.TimerHandle | None = None

    def enter(self, connections: Connections, entry: Entry) -> None:
        """Set the entry that counts this connection. Call this before `connection_made`."""
        self._connections, self._entry = connections, entry

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._entry.close = transport.abort
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.leave(self._entry)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX + len(data):
                self._refuse(Problem(431, "head-too-large", "the request's head is too large"))
                return
        self._unfed += data
        self._feed()
        if self._is_in_head:
            self._connections.began(self._entry)

    def _feed(self) -> None:
        """Parse the received bytes piece by piece, and pause while pipelined requests wait."""
        while self._unfed and not self.pipeline and not self.transport.is_closing():
            piece = bytes(self._unfed[:PIECE_BYTES])
            del self._unfed[:PIECE_BYTES]
            super().data_received(piece)
        if self._unfed:
            self.flow.pause_reading()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        if self._patience is None:
            self._wait_for_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._refuse_two_hosts()
        self._connections.asked(self._entry)
        if self._entry.is_spare and self.url.partition(b"?")[0] not in HEALTH:
            self.app = _too_many
        self._is_in_head = False
        self._is_in_body = True
        self._passed_over = 0
        self._head_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            self._passed_over += len(body)
            if self._passed_over > UNREAD_BYTES_MAX:
                self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        # The request is answered and its body is not read, so limit how long it may go on.
        if self._is_in_body and self._patience is None:
            self._patience = self.loop.call_later(UNREAD_S_MAX, self.transport.abort)
        super().on_response_complete()
        if not (self._unfed or self.pipeline or self.transport.is_closing()):
            self._connections.rests(self._entry)
        if self._unfed:
            self.flow.pause_reading()
            self.loop.call_soon(self._feed)

    def _refuse_two_hosts(self) -> None:
        """Refuse a request with no clear host, because a proxy could understand another host."""
        hosts = [value for name, value in self.headers if name == b"host"]
        is_named = bool(hosts) or self.parser.get_http_version() != "1.1"
        if len(hosts) > 1 or not is_named or not self._is_target_of(hosts):
            self._complaint = Problem(
                400,
                "host-unclear",
                "a request names one host: in one header Host, and with an absolute target the "
                "same one there",
            )
            raise ValueError("host-unclear")

    def _is_target_of(self, hosts: list[bytes]) -> bool:
        if self.url.startswith(b"/"):
            return True
        target = httptools.parse_url(self.url)
        port = b":%d" % target.port if target.port else b""
        named = [each.translate(None, b"[] ").lower() for each in (target.host + port, *hosts)]
        return len(set(named)) == 1

    def send_400_response(self, msg: str) -> None:
        complaint = self._complaint
        self._refuse(
            complaint or Problem(400, "request-malformed", "this is no HTTP request; mend it")
        )

    def _refuse(self, problem: Problem) -> None:
        body = problem.body()
        reason = {400: "Bad Request", 431: "Request Header Fields Too Large"}[problem.status]
        head = (
            f"HTTP/1.1 {problem.status} {reason}\r\nContent-Type: {MEDIA_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _wait_for_head(self) -> None:
        within_s = SPARE_HEAD_S_MAX if self._entry.is_spare else HEAD_S_MAX
        self._patience = self.loop.call_later(within_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


async def _too_many(_: ASGIScope, __: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    problem = Problem(
        503,
        "too-many-connections",
        "too many connections are open, yours or those of others; close some, or come again later",
    )
    body = problem.body()
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"5"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
