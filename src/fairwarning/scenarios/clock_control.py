"""How time passes in a rehearsal: in a leap, at a speed, or as the server's clock goes."""

import math
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from fairwarning.scenarios.api import Operator, instant

LOOK_S = 0.5
"""So often whoever waits looks at what has happened."""
STRIDE_S = 0.25

Look = Callable[[], None]
Sleep = Callable[[float], None]


class Pace(Protocol):
    def now(self) -> datetime: ...

    def until(self, target: datetime, look: Look) -> None:
        """Returns when it is that late, and calls `look` whenever something may have happened."""
        ...

    def settle(self) -> None:
        """Returns when whatever a deed has set off at once is done, if that can be known."""
        ...


class _Moved:
    """A clock that stands still until it is moved."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def now(self) -> datetime:
        return instant(self._operator.get("clock")["now"])

    def settle(self) -> None:
        self._advance(0)

    def _advance(self, by_s: int) -> datetime:
        face = self._operator.post("clock", "advance", body={"by": f"PT{by_s}S"})
        return instant(face["now"])


class Leaping(_Moved):
    """As fast as possible."""

    def until(self, target: datetime, look: Look) -> None:
        left_s = math.ceil((target - self.now()).total_seconds())
        if left_s > 0:
            self._advance(left_s)
        look()


class Striding(_Moved):
    """So many seconds of the story in each real one."""

    def __init__(self, operator: Operator, speed: float, sleep: Sleep = time.sleep) -> None:
        super().__init__(operator)
        self._speed = speed
        self._sleep = sleep

    def until(self, target: datetime, look: Look) -> None:
        now = self.now()
        stride_s = max(1, round(self._speed * STRIDE_S))
        while (left_s := math.ceil((target - now).total_seconds())) > 0:
            by_s = min(left_s, stride_s)
            self._sleep(by_s / self._speed)
            now = self._advance(by_s)
            look()
        look()


class Waiting:
    """A clock that goes by itself: the real one, or a virtual one at a speed of its own."""

    def __init__(self, operator: Operator, speed: float, sleep: Sleep = time.sleep) -> None:
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
        """What is under way is told when it has happened."""


class NoSuchSpeed(Exception):
    """The server's clock is not ours to move."""


def choose_pace(operator: Operator, speed: float | None, sleep: Sleep = time.sleep) -> Pace:
    """Raises NoSuchSpeed."""
    face = operator.get("clock")
    own = float(face.get("speed", 0 if face["virtual"] else 1))
    if own:
        if speed is not None:
            kind = f"runs by itself, at speed {own:g}" if face["virtual"] else "is the real one"
            raise NoSuchSpeed(
                f"the server's clock {kind}; leave --speed out, use a server that was started with "
                "--clock virtual, or let --serve start one"
            )
        return Waiting(operator, own, sleep)
    return Leaping(operator) if speed is None else Striding(operator, speed, sleep)
