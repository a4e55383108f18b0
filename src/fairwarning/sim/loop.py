"""An event loop whose time stands still until the world moves it.

The engine sleeps in two ways: on its clock's alarms, and, where no clock of the fleet is
meant, on the event loop (the change feed, views that read again, polls that are held). With
this loop both obey the world, and no run waits for real time.
"""

import asyncio


class SimLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._moved_s = 0.0
        super().__init__()

    def time(self) -> float:
        return self._moved_s

    def move(self, by_s: float) -> None:
        self._moved_s += by_s

    def next_in_ms(self) -> int | None:
        """How long until the first timer; None: nobody has set one."""
        # asyncio has no public way to ask which timers are set.
        timers = self._scheduled  # type: ignore[attr-defined]
        first = min((each.when() for each in timers if not each.cancelled()), default=None)
        return None if first is None else max(0, -int(-(first - self._moved_s) * 1000 // 1))

    def has_ready(self) -> bool:
        """Whether a task or callback could run now."""
        return bool(self._ready)  # type: ignore[attr-defined]


def current() -> SimLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop), "a simulated world needs the simulation's own event loop"
    return loop
