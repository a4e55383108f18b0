"""When the service tells nothing, and for how long: two lines of the log, however long it is."""

import time
from collections.abc import Callable

from fairwarning.agent import logs
from fairwarning.agent.durations import human_s


class Outages:
    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._began_s: float | None = None

    def polled(self, trouble: str, *, is_answer: bool) -> None:
        """A poll may be neither: a question that is put again in other words ends nothing."""
        if trouble and self._began_s is None:
            self._began_s = self._monotonic_s()
            logs.warn(f"the service tells nothing: {trouble}", trouble=trouble)
        elif is_answer and self._began_s is not None:
            lasted_s = self._monotonic_s() - self._began_s
            self._began_s = None
            logs.say(f"the service answers again, after {human_s(lasted_s)}", lasted_s=lasted_s)
