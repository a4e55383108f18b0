"""The service's time, from the dates of its responses and the seconds that have passed since.

This module is pure: callers pass the seconds of a monotonic clock.
"""

from datetime import datetime, timedelta

BACK_MAX = timedelta(minutes=1)
"""A date that is further back than this means that the service's clock was set back."""
BLUR = timedelta(seconds=2)
"""A date has whole seconds, and is a little old when it arrives."""
_NOTHING = timedelta()


class ServiceTime:
    """Follows the service's clock.

    A step back of less than a minute is followed only if the service's clock is running. A virtual
    clock may show the same second for long, and then a caller who waits a second must still see
    it pass. And one response that was ahead must not keep us ahead for ever.
    """

    def __init__(self) -> None:
        self._known: tuple[datetime, float] | None = None
        self._said: tuple[datetime, float] | None = None
        """The date of the last response, and when it came."""

    def now(self, at_s: float) -> datetime | None:
        """Return the service's time; None before the first response."""
        if self._known is None:
            return None
        date, since_s = self._known
        return date + timedelta(seconds=at_s - since_s)

    def update(self, date: datetime, at_s: float) -> None:
        """Take the date of a response."""
        now = self.now(at_s)
        if now is not None and _NOTHING < (ahead := now - date) < BACK_MAX:
            follows = ahead > BLUR and self._is_running(date, at_s)
            self._known = (date if follows else now, at_s)
        else:
            self._known = (date, at_s)
        self._said = (date, at_s)

    def _is_running(self, date: datetime, at_s: float) -> bool:
        """Return whether the service's clock runs: not much slower than ours since last time."""
        if self._said is None:
            return False
        said, since_s = self._said
        return (date - said).total_seconds() >= max(1.0, (at_s - since_s) / 2)
