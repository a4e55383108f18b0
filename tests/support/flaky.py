"""A store that fails at a chosen call, before or after it is done.

A test runs once to count the calls, and then again for each of them: so every branch for an
outage is taken, wherever it is.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from fairwarning.engine.protocols import Store, StoreDown

_OWN = ("open", "close", "listen")


class Flaky:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[str] = []
        self._counts = False
        self._fails: range = range(0)
        self._is_late = False

    @contextmanager
    def failing(self, at: range = range(0), *, is_late: bool = False) -> Iterator[None]:
        """Makes the calls of these numbers fail from here on; `late` means after they were done."""
        self.calls, self._fails, self._is_late = [], at, is_late
        self._counts = True
        try:
            yield
        finally:
            self._counts = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found) or name in _OWN:
            return found

        async def call(*args: Any, **named: Any) -> Any:
            is_failing = self._counts and len(self.calls) in self._fails
            if self._counts:
                kind = f" {args[0]}" if name in ("keep", "drop", "record", "records") else ""
                self.calls.append(f"{name}{kind}")
            if is_failing and not self._is_late:
                raise StoreDown("switched off by the test")
            answer = await found(*args, **named)
            if is_failing:
                raise StoreDown("the answer was lost")
            return answer

        return call

    @property
    def store(self) -> Store:
        return cast(Store, self)


Scenario = Callable[[range, bool], Awaitable[list[str]]]
"""Runs with these calls failing, checks all that must hold, and says which calls there were."""


async def every_call_fails(
    scenario: Scenario, *, at_once: int = 1, every: int = 1
) -> AsyncIterator[str]:
    """Runs the scenario once without faults, and again for each call that fails.

    Of a long run, `every` so many of each kind of call, beginning with the first two.
    """
    calls = await scenario(range(0), False)
    seen: dict[str, int] = {}
    for number, name in enumerate(calls):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 2 and seen[name] % every:
            continue
        for is_late in (False, True):
            await scenario(range(number, number + at_once), is_late)
            yield name
