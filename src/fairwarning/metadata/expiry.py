"""Expiry ends connections that are silent for too long.

A sweep checks every connection about once a second. A response only sets a flag, and the next sweep
sets the new time. Reading a clock for every response would make each known poll slower.
"""

import time

from fairwarning.metadata.settings import KEEP_ALIVE_S, REQUEST_S_MAX

_NEVER_S = float("inf")


class ExpiringConnection:
    """The part of a connection that knows when it expires. It is a base class and not a field, so
    that a known poll sets `_has_answered` without one more lookup.
    """

    __slots__ = ("_expires_s", "_has_answered")

    _has_answered: bool
    """Whether a response was sent since the last sweep."""
    _expires_s: float
    """When the connection expires, by the monotonic clock."""

    def sweep(self, now_s: float) -> None:
        """Extend the time if a response was sent since the last sweep. Else expire if it is up."""
        if self._has_answered:
            self._has_answered = False
            self._expires_s = now_s + KEEP_ALIVE_S
        elif self._expires_s < now_s:
            self.expire()

    def expire(self) -> None:
        """Cut the connection at once. A subclass must override this."""
        raise NotImplementedError

    def _expect_request(self) -> None:
        """Start the time limit for one whole request."""
        self._has_answered = False
        self._expires_s = time.monotonic() + REQUEST_S_MAX

    def _suspend_expiry(self) -> None:
        """Don't expire until the response is sent, because the client waits for us."""
        self._has_answered = False
        self._expires_s = _NEVER_S
