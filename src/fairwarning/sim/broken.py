"""How a checker says that a promise does not hold."""

from collections.abc import Callable


class Broken(AssertionError):
    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise


def demand(promise: str, holds: bool, what: Callable[[], str]) -> None:
    if not holds:
        raise Broken(promise, what())
