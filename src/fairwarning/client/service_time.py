"""Computes the service's time from the dates of its responses and the seconds since then.

This module is pure. Callers pass the seconds of a monotonic clock as `at_s`.
"""

from datetime import datetime, timedelta

BACK_MAX = timedelta(minutes=1)
"""If a date is behind by more than this, the service's clock was set back."""
BLUR = timedelta(seconds=2)
"""How much a correct date may be behind: it has whole seconds, and is a little old on arrival."""
_NOTHING = timedelta()


class ServiceTime:
    """Follows the service's clock.

    If a date is behind our time by less than a minute, we follow it only if the service's clock is
    running. A virtual clock may stand still, and a caller who waits for a second must still see it
    pass. If the clock is running, we do follow it: one wrong date must not keep us ahead for ever.
    """

    def __init__(self) -> None:
        self._known: tuple[datetime, float] | None = None
        self._said: tuple[datetime, float] | None = None
        """The date of the last response, and when the response came."""

    def now(self, at_s: float) -> datetime | None:
        """Return the service's time. It is None before the first call of `update`."""
        if self._known is None:
            return None
        date, since_s = self._known
        return date + timedelta(seconds=at_s - since_s)

    def update(self, date: datetime, at_s: float) -> None:
        """Process the date of a response that came at `at_s`."""
        now = self.now(at_s)
        if now is not None and _NOTHING < (ahead := now - date) < BACK_MAX:
            follows = ahead > BLUR and self._is_running(date, at_s)
            self._known = (date if follows else now, at_s)
        else:
            self._known = (date, at_s)
        self._said = (date, at_s)

    def _is_running(self, date: datetime, at_s: float) -> bool:
        """Return whether the service's clock ran at least half as fast as ours since last time."""
        if self._said is None:
            return False
        said, since_s = self._said
        return (date - said).total_seconds() >= max(1.0, (at_s - since_s) / 2)
