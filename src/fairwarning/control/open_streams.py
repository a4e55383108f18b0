"""Streams of server-sent events that are open, of the API and of the portal together."""

from collections import Counter
from collections.abc import AsyncIterable, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from fairwarning.control.access import Caller
from fairwarning.control.problems import Problem

STREAMS_MAX = 500
CALLER_STREAMS_MAX = 100
"""Of one token; all without one, on loopback, count as one."""
MEDIA_TYPE = "text/event-stream"


class OpenStreams:
    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def begin(self, caller: Caller, lines: AsyncIterable[bytes]) -> StreamingResponse:
        """Raises Problem if there are too many."""
        id = caller.token_id
        if self._open[id] >= CALLER_STREAMS_MAX or self._open.total() >= STREAMS_MAX:
            raise Problem(
                503,
                "too-many-streams",
                f"at most {STREAMS_MAX} streams are open, {CALLER_STREAMS_MAX} of one token; close "
                "some, or come again later",
                headers={"Retry-After": "5"},
            )
        self._open[id] += 1
        return _Stream(lines, lambda: self._end(id))

    def _end(self, id: str) -> None:
        self._open[id] -= 1
        if not self._open[id]:
            del self._open[id]


class _Stream(StreamingResponse):
    """Counts as open until it ends, also if its reader leaves before the first line."""

    def __init__(self, lines: AsyncIterable[bytes], on_end: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(lines, media_type=MEDIA_TYPE, headers=headers)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()
