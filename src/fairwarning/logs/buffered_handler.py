"""Writes all lines of one iteration of the event loop at once.

A commit of sixty callers is some two hundred lines, and a write for each costs the server
more than the commit itself.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TextIO


class BufferedHandler(logging.StreamHandler[TextIO]):
    """Buffers lines up to INFO from inside the event loop; any other line is written at once."""

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
        # If the log cannot be written, there is no place left to say so.
        with suppress(OSError, ValueError):
            self.stream.write("".join(f"{text}{self.terminator}" for text in texts))
            self.stream.flush()

    def _flushes_later(self) -> bool:
        """Plans a flush and returns True, or returns False outside an event loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if self._flushing_loop is not loop:
            self._flushing_loop = loop
            loop.call_soon(self.flush)
        return True
