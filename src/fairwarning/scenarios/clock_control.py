"""Lets time pass in a scenario. It jumps, or moves at a speed, or follows the server's clock."""

import math
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from fairwarning.scenarios.model import OperatorApi, instant

LOOK_S = 0.5
"""The real seconds between two looks at what has happened, while a player waits. People read no
faster.
"""
STEP_S = 0.25
"""The real seconds between two moves of a `PacedClock`. Shorter steps would only load the server.
"""

Look = Callable[[], None]
Sleep = Callable[[float], None]


class ClockControl(Protocol):
    def now(self) -> datetime: ...

    def until(self, target: datetime, look: Look) -> None:
        """Wait until `target`, and call `look` whenever something may have happened."""
        ...

    def settle(self) -> None:
        """Wait for the immediate effects of an action, if the clock can tell when they are done."""
        ...


class _ServerClock:
    def __init__(self, operator: OperatorApi) -> None:
        self._operator = operator

    def now(self) -> datetime:
        return instant(self._operator.get("clock")["now"])


class _MovableClock(_ServerClock):
    """A virtual clock that stands still until the player moves it."""

    def settle(self) -> None:
        self._advance(0)

    def _advance(self, by_s: int) -> datetime:
        clock = self._operator.post("clock", "advance", body={"by": f"PT{by_s}S"})
        return instant(clock["now"])


class JumpingClock(_MovableClock):
    """Moves the clock to the time of each step in one jump."""

    def until(self, target: datetime, look: Look) -> None:
        left_s = math.ceil((target - self.now()).total_seconds())
        if left_s > 0:
            self._advance(left_s)
        look()


class PacedClock(_MovableClock):
    """Moves the clock by `speed` seconds in each real second."""

    def __init__(self, operator: OperatorApi, speed: float, sleep: Sleep = time.sleep) -> None:
        super().__init__(operator)
        self._speed = speed
        self._sleep = sleep

    def until(self, target: datetime, look: Look) -> None:
        now = self.now()
        step_s = max(1, round(self._speed * STEP_S))
        while (left_s := math.ceil((target - now).total_seconds())) > 0:
            by_s = min(left_s, step_s)
            self._sleep(by_s / self._speed)
            now = self._advance(by_s)
            look()
        look()


class RunningClock(_ServerClock):
    """Waits for a clock that runs by itself, which is real or virtual with a speed."""

    def __init__(self, operator: OperatorApi, speed: float, sleep: Sleep = time.sleep) -> None:
        super().__init__(operator)
        self._speed = speed
        self._sleep = sleep

    def until(self, target: datetime, look: Look) -> None:
        while (left := target - self.now()) > timedelta(0):
            self._sleep(min(left.total_seconds() / self._speed, LOOK_S))
            look()
        look()

    def settle(self) -> None:
        """Do nothing. Effects are reported when they have happened."""


class SpeedNotAllowed(Exception):
    """A speed was given, but the server's clock runs by itself."""


def choose_clock_control(
    operator: OperatorApi, speed: float | None, sleep: Sleep = time.sleep
) -> ClockControl:
    """Return the control that fits the server's clock.

    Raises `SpeedNotAllowed` if a speed is given and the clock runs by itself.
    """
    clock = operator.get("clock")
    own = float(clock.get("speed", 0 if clock["virtual"] else 1))
    if own:
        if speed is not None:
            kind = f"runs by itself, at speed {own:g}" if clock["virtual"] else "is the real one"
            raise SpeedNotAllowed(
                f"the server's clock {kind}; leave --speed out, use a server that was started with "
                "--clock virtual, or let --serve start one"
            )
        return RunningClock(operator, own, sleep)
    return JumpingClock(operator) if speed is None else PacedClock(operator, speed, sleep)
