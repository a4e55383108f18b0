"""Time passes as the server's clock allows: in a leap, at a speed, or by itself."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairwarning.common.durations import parse_iso_duration_ms
from fairwarning.scenarios.clock_control import SpeedNotAllowed, choose_clock_control
from fairwarning.scenarios.model import OperatorApi

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """Of a server; `sleep` is real time, which moves it if it runs by itself."""

    def __init__(self, speed: float, *, virtual: bool) -> None:
        self.now = START
        self.speed = speed
        self.virtual = virtual
        self.slept_s = 0.0
        self.advances: list[int] = []

    def get(self, *path: str, **_: Any) -> dict[str, Any]:
        assert path == ("clock",)
        return {"now": self.now.isoformat(), "virtual": self.virtual, "speed": self.speed}

    def post(self, *path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        assert path == ("clock", "advance")
        assert body is not None
        by_ms = parse_iso_duration_ms(body["by"])
        assert by_ms is not None
        self.advances.append(by_ms // 1000)
        self.now += timedelta(milliseconds=by_ms)
        return self.get("clock")

    def delete(self, *path: str) -> dict[str, Any]:
        raise AssertionError(path)

    def sleep(self, for_s: float) -> None:
        self.slept_s += for_s
        self.now += timedelta(seconds=for_s * self.speed)


def pass_an_hour(clock: Clock, speed: float | None) -> int:
    operator: OperatorApi = clock
    looks = []
    control = choose_clock_control(operator, speed, clock.sleep)
    control.until(START + timedelta(hours=1), lambda: looks.append(clock.now))
    assert clock.now >= START + timedelta(hours=1)
    assert looks[-1] == clock.now
    return len(looks)


def test_a_standing_clock_is_moved_in_one_leap() -> None:
    clock = Clock(0, virtual=True)
    pass_an_hour(clock, None)
    assert (clock.advances, clock.slept_s) == ([3600], 0)


@pytest.mark.parametrize("speed", [0.5, 60, 3600])
def test_with_a_speed_it_is_moved_in_strides_that_take_their_time(speed: float) -> None:
    clock = Clock(0, virtual=True)
    looks = pass_an_hour(clock, speed)
    assert sum(clock.advances) == 3600
    assert clock.slept_s == pytest.approx(3600 / speed)
    assert looks > 3


@pytest.mark.parametrize(("virtual", "speed"), [(False, 1), (True, 60)])
def test_a_clock_that_runs_is_waited_for(virtual: bool, speed: float) -> None:
    clock = Clock(speed, virtual=virtual)
    looks = pass_an_hour(clock, None)
    assert clock.advances == []
    assert clock.slept_s == pytest.approx(3600 / speed)
    assert looks > 60 / speed


def test_a_fast_clock_does_not_run_past_the_time_that_is_waited_for() -> None:
    clock = Clock(60, virtual=True)
    control = choose_clock_control(clock, None, clock.sleep)
    control.until(START + timedelta(seconds=100), lambda: None)
    assert clock.slept_s == pytest.approx(100 / 60)


@pytest.mark.parametrize(("virtual", "speed"), [(False, 1), (True, 60)])
def test_a_clock_that_runs_has_no_other_speed(virtual: bool, speed: float) -> None:
    with pytest.raises(SpeedNotAllowed, match="--serve"):
        choose_clock_control(Clock(speed, virtual=virtual), 30)
