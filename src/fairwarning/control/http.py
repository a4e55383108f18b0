"""uvicorn's HTTP, with limits on what a stranger can make it hold: heads, and the time for one."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairwarning.control.problems import MEDIA_TYPE, Problem

HEAD_BYTES_MAX = 64 * 1024
HEAD_S_MAX = 20
"""From the connection or the end of the last request to the end of a head."""


class LimitedHttp(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._is_in_head = True
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX + len(data):
                self._refuse(Problem(431, "head-too-large", "the request's head is too large"))
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._is_in_head = True
        if self._patience is None:
            self._wait_for_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._head_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, "request-malformed", "this is no HTTP request; mend it"))

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
        self._patience = self.loop.call_later(HEAD_S_MAX, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
