"""The two headers that differ from answer to answer: the date and the request's id."""

import asyncio
import os
import time
from collections.abc import Callable
from email.utils import formatdate
from operator import length_hint

_LAST_BYTES = tuple(b"%02x" % number for number in range(256))


class Stamp:
    """Formatting them anew, or only reading the clock, was a tenth of what a known poll costs.

    So all but the id's last byte is made once for 256 answers, and a timer ends such a block
    with its second. Lives in an event loop.
    """

    def __init__(self, seconds: Callable[[], float] | None = None) -> None:
        """`seconds`: a clock that no timer can follow; it is read for every answer."""
        self._seconds = seconds or time.time
        self._is_steady = seconds is None
        seed = os.urandom(10).hex()
        prefix = f"{seed[:8]}-{seed[8:12]}-4{seed[13:16]}-8{seed[17:20]}-"
        self._prefix = b"\r\nx-ms-request-id: " + prefix.encode()
        self._timer: asyncio.TimerHandle | None = None
        self._number = -1
        self._used = 0
        """Of all blocks before this one."""
        self._size = 0
        self.block = b""
        self.lasts = iter(_LAST_BYTES[:0])
        """The ids' last bytes that are left. With none, `begin` gives the first of a new block."""

    @property
    def count(self) -> int:
        """How many were given out: every answer takes one."""
        return self._used + self._size - length_hint(self.lasts)

    def next(self) -> bytes:
        last = next(self.lasts, None) or self.begin()
        return self.block + last

    def begin(self) -> bytes:
        self._end()
        self._number += 1
        now_s = self._seconds()
        date = formatdate(int(now_s), usegmt=True).encode()
        self.block = b"Date: " + date + self._prefix + b"%010x" % self._number
        self._size = len(_LAST_BYTES) if self._is_steady else 1
        self.lasts = iter(_LAST_BYTES[: self._size])
        if self._is_steady and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(1 - now_s % 1, self._end_second)
        return next(self.lasts)

    def _end_second(self) -> None:
        self._timer = None
        self._end()

    def _end(self) -> None:
        self._used, self._size = self.count, 0
        self.lasts = iter(_LAST_BYTES[:0])
