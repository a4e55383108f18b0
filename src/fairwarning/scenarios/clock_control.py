"""Lets time pass in a scenario: in jumps, at a speed, or as the server's clock runs."""

import math
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from fairwarning.scenarios.api import OperatorApi, instant

LOOK_S = 0.5
"""How often a waiting player looks at what has happened, in real seconds."""
STEP_S = 0.25
"""How often a clock that is moved at a speed is moved, in real seconds."""

Look = Callable[[], None]
Sleep = Callable[[float], None]


class ClockControl(Protocol):
    def now(self) -> datetime: ...

    def until(self, target: datetime, look: Look) -> None:
        """Wait until that time, and call `look` whenever something may have happened."""
        ...

    def settle(self) -> None:
        """Wait until the immediate effects of an action are done, if that can be known."""
        ...


class _MovableClock:
    """A virtual clock that stands still until it is moved."""

    def __init__(self, operator: OperatorApi) -> None:
        self._operator = operator

    def now(self) -> datetime:
        return instant(self._operator.get("clock")["now"])

    def settle(self) -> None:
        self._advance(0)

    def _advance(self, by_s: int) -> datetime:
        clock = self._operator.post("clock", "advance", body={"by": f"PT{by_s}S"})
        return instant(clock["now"])


class JumpingClock(_MovableClock):
    """Moves the clock to each step at once."""

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


class RunningClock:
    """Waits for a clock that runs by itself: the real one, or a virtual one with a speed."""

    def __init__(self, operator: OperatorApi, speed: float, sleep: Sleep = time.sleep) -> None:
        self._operator = operator
        self._speed = speed
        self._sleep = sleep

    def now(self) -> datetime:
        return instant(self._operator.get("clock")["now"])

    def until(self, target: datetime, look: Look) -> None:
        while (left := target - self.now()) > timedelta(0):
            self._sleep(min(left.total_seconds() / self._speed, LOOK_S))
            look()
        look()

    def settle(self) -> None:
        """Do nothing: effects are reported when they have happened."""


class SpeedNotAllowed(Exception):
    """A speed was given, but the server's clock runs by itself."""


def choose_clock_control(
    operator: OperatorApi, speed: float | None, sleep: Sleep = time.sleep
) -> ClockControl:
    """Choose by the kind of the server's clock. Raises SpeedNotAllowed."""
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
