"""Writes all lines of one iteration of the event loop at once.

A commit for sixty callers has about two hundred lines. To write them one by one would cost
the server more than the commit itself.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TextIO


class BufferedHandler(logging.StreamHandler[TextIO]):
    """Buffers lines of level INFO and below until the event loop's next iteration. A line above
    INFO, or from outside an event loop, is written at once.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._texts: list[str] = []
        self._flushing_loop: asyncio.AbstractEventLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
            return
        if text:
            self._texts.append(text)
        if record.levelno > logging.INFO or not self._flushes_later():
            self.flush()

    def flush(self) -> None:
        self.acquire()
        try:
            self._write_out()
        finally:
            self.release()

    def _write_out(self) -> None:
        self._flushing_loop = None
        texts, self._texts = self._texts, []
        if not texts:
            return
        # If the log cannot be written, the failure cannot be logged either.
        with suppress(OSError, ValueError):
            self.stream.write("".join(f"{text}{self.terminator}" for text in texts))
            self.stream.flush()

    def _flushes_later(self) -> bool:
        """Plans a flush and returns True. Outside an event loop it only returns False."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if self._flushing_loop is not loop:
            self._flushing_loop = loop
            loop.call_soon(self.flush)
        return True
