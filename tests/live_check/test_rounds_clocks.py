"""What is noted of the machine under load: its clocks now and then, and each time it is late."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from fairwarning.live_check import rounds
from fairwarning.live_check.rounds import _LATE_S, _READING_EVERY_S, _watch


class Enough(Exception):
    pass


async def readings(monkeypatch: pytest.MonkeyPatch, *late_s: float) -> list[float]:
    """How late each reading says that it was, if the machine is so late with each look."""
    now_s, found, late = 100.0, [], iter(late_s)

    async def sleep(seconds: float) -> None:
        nonlocal now_s
        try:
            now_s += seconds + next(late)
        except StopIteration:
            raise Enough from None

    clock = SimpleNamespace(monotonic=lambda: now_s, time=time.time)
    monkeypatch.setattr(rounds, "time", clock)
    monkeypatch.setattr(rounds, "asyncio", SimpleNamespace(sleep=sleep))
    recorder = SimpleNamespace(add=lambda reading: found.append(reading.late_s))
    world: Any = SimpleNamespace(nodes=[], recorder=recorder)
    with pytest.raises(Enough):
        await _watch(world)
    return found


async def test_a_machine_that_is_late_is_noted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await readings(monkeypatch, 0.0, _LATE_S + 0.5, 0.0) == [_LATE_S + 0.5]


async def test_the_clocks_are_read_now_and_then_too(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = int(2.5 * _READING_EVERY_S / rounds._WATCH_PAUSE_S)
    assert await readings(monkeypatch, *[0.0] * looks) == [0.0, 0.0]
