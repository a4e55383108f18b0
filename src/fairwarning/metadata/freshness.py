"""Watches the age of the documents that instances get, because they grow old while the store is
away.

The age is the time since the documents were last known to be complete. It is a few seconds while
all is well, because a node looks at the store every two seconds.
"""

import logging
from collections.abc import Callable

STALE_S_MIN = 10.0
"""Documents of this age count as stale. While all is well, they are never this old."""

_log = logging.getLogger(__name__)


class Freshness:
    """Logs when the documents become stale and when they are fresh again. Calls `on_expired` with
    True when they become too old to be served, and with False when they no longer are.
    """

    def __init__(
        self,
        age_s: Callable[[], float],
        stale_s_max: float | None,
        on_expired: Callable[[bool], None],
    ) -> None:
        """`stale_s_max` is the age up to which documents are served. None means any age."""
        self.age_s = age_s
        self._stale_s_max = stale_s_max
        self._on_expired = on_expired
        self._is_stale = False
        self._is_expired = False

    def look(self) -> None:
        """Look at the age. Call this every second."""
        age_s = self.age_s()
        is_stale = age_s >= STALE_S_MIN
        if is_stale and not self._is_stale:
            end = (
                "" if self._stale_s_max is None else f" until they are {self._stale_s_max:g} s old"
            )
            _log.warning(
                "the store cannot be reached; instances get the documents of %.0f s ago%s",
                age_s,
                end,
            )
        is_expired = self._stale_s_max is not None and age_s > self._stale_s_max
        if is_expired is not self._is_expired:
            self._is_expired = is_expired
            if is_expired:
                _log.warning("the documents are %.0f s old, so instances get 503 now", age_s)
            self._on_expired(is_expired)
        if self._is_stale and not is_stale:
            _log.warning("the documents are up to date again")
        self._is_stale = is_stale
