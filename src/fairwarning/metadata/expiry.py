"""Expiry ends connections that are silent for too long.

A sweep looks at every connection about once a second. A response only sets a flag, and the next
sweep makes a time of it: reading a clock for every response would make each known poll dearer.
"""

import time

from fairwarning.metadata.settings import KEEP_ALIVE_S, REQUEST_S_MAX

_NEVER_S = float("inf")


class ExpiringConnection:
    """The part of a connection that knows when silence ends it.

    It is a base class and not a field, because a known poll sets `_has_answered`, and one more
    lookup would cost every poll something.
    """

    __slots__ = ("_expires_s", "_has_answered")

    _has_answered: bool
    """Whether a response was sent since the last sweep."""
    _expires_s: float
    """When silence ends the connection, by the monotonic clock."""

    def sweep(self, now_s: float) -> None:
        """Renew the time of a connection that has answered; expire one whose time is over."""
        if self._has_answered:
            self._has_answered = False
            self._expires_s = now_s + KEEP_ALIVE_S
        elif self._expires_s < now_s:
            self.expire()

    def expire(self) -> None:
        """Cut the connection at once. The subclass knows how."""
        raise NotImplementedError

    def _expect_request(self) -> None:
        """Give the client its time for one whole request, however slowly it sends it."""
        self._has_answered = False
        self._expires_s = time.monotonic() + REQUEST_S_MAX

    def _suspend_expiry(self) -> None:
        """Never expire while we owe the client a response: then the silence is ours."""
        self._has_answered = False
        self._expires_s = _NEVER_S
