"""The server's time between two answers, because countdowns run on its clock and not on ours."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from fairwarning.cli.times import from_wire


class ServerClock:
    def __init__(
        self, face: dict[str, Any], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.is_virtual = bool(face["virtual"])
        self.speed = float(face.get("speed", 0 if self.is_virtual else 1))
        """How fast it runs by itself."""
        self._monotonic = monotonic
        self._now = from_wire(face["now"])
        self._read_s = monotonic()

    def now(self) -> datetime:
        return self._now + timedelta(seconds=(self._monotonic() - self._read_s) * self.speed)

    def saw(self, at: datetime) -> None:
        """Something happened at `at`: a virtual clock has come at least that far."""
        if self.is_virtual and at > self.now():
            self._now, self._read_s = at, self._monotonic()
