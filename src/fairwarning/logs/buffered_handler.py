"""Writes once for all lines of a turn of the event loop.

A commit of sixty callers is some two hundred lines, and a write for each costs the server
more than the commit itself.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TextIO


class TurnHandler(logging.StreamHandler[TextIO]):
    """What is more than information, or comes from outside the loop, is written at once."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._texts: list[str] = []
        self._awaited: asyncio.AbstractEventLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
            return
        if text:
            self._texts.append(text)
        if record.levelno > logging.INFO or not self._waits_for_its_turn():
            self.flush()

    def flush(self) -> None:
        self.acquire()
        try:
            self._write_out()
        finally:
            self.release()

    def _write_out(self) -> None:
        self._awaited = None
        texts, self._texts = self._texts, []
        if not texts:
            return
        # Nobody is left to be told that nobody reads the log.
        with suppress(OSError, ValueError):
            self.stream.write("".join(f"{text}{self.terminator}" for text in texts))
            self.stream.flush()

    def _waits_for_its_turn(self) -> bool:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if self._awaited is not loop:
            self._awaited = loop
            loop.call_soon(self.flush)
        return True
