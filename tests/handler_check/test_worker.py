"""What a worker does to the handler of its case."""

from types import SimpleNamespace
from typing import Any

from fairwarning.handler_check.worker import _starter


class Recorded:
    """A handler that tells what was done to it."""

    def __init__(self, told: list[str]) -> None:
        self._told = told
        told.append("start")

    def kill(self) -> None:
        self._told.append("kill")

    def stop(self) -> None:
        self._told.append("stop")


def test_a_reboot_is_a_kill_and_no_chance_to_tidy_up() -> None:
    told: list[str] = []
    observed: Any = SimpleNamespace(handler=None)
    make: Any = lambda: Recorded(told)  # noqa: E731
    start = _starter(observed, make)
    start()
    start()
    assert told == ["start", "kill", "start"]
