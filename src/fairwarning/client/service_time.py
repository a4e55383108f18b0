"""What time it is at the service, as its answers say and our own clock carries on. Pure: whoever
asks says how many seconds have passed by a clock that is never set."""

from datetime import datetime, timedelta

BACK_MAX = timedelta(minutes=1)
"""Whoever is further back than this was set back, and is followed at once."""
BLUR = timedelta(seconds=2)
"""A date has whole seconds, and was some time on its way."""
_NOTHING = timedelta()


class ServiceTime:
    """Steps back of less than a minute are followed only if the service's clock goes. Where it
    says the same second for long, as a virtual one does, whoever waits a second must see it pass;
    and one answer that was ahead must not keep us ahead for good."""

    def __init__(self) -> None:
        self._known: tuple[datetime, float] | None = None
        self._said: tuple[datetime, float] | None = None
        """By the last answer, followed or not."""

    def now(self, at_s: float) -> datetime | None:
        """None before the first answer."""
        if self._known is None:
            return None
        date, since_s = self._known
        return date + timedelta(seconds=at_s - since_s)

    def hear(self, date: datetime, at_s: float) -> None:
        now = self.now(at_s)
        if now is not None and _NOTHING < (ahead := now - date) < BACK_MAX:
            follows = ahead > BLUR and self._goes(date, at_s)
            self._known = (date if follows else now, at_s)
        else:
            self._known = (date, at_s)
        self._said = (date, at_s)

    def _goes(self, date: datetime, at_s: float) -> bool:
        """Since the last answer the service's clock went on, and not much slower than ours."""
        if self._said is None:
            return False
        said, since_s = self._said
        return (date - said).total_seconds() >= max(1.0, (at_s - since_s) / 2)
