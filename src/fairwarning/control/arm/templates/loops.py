"""`copyIndex`: how far the loops around an expression have come."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fairwarning.control.arm.templates.faults import Fault, shown
from fairwarning.control.arm.templates.functions.signature import Function, takes
from fairwarning.control.arm.templates.values import Kind, Value


class Loops:
    """`current` is the loop of the resource itself, which `copyIndex` means without a name."""

    def __init__(self, indexes: Mapping[str, int] | None = None, current: str = "") -> None:
        self._indexes = dict(indexes or {})
        self._current = current.lower()

    def functions(self) -> dict[str, Function]:
        return {"copyindex": takes(self._index, Kind.TEXT | Kind.INT, Kind.INT, least=0)}

    def of_resource(self, name: str, at: int) -> "Loops":
        return Loops({**self._indexes, name.lower(): at}, name)

    @contextmanager
    def within(self, name: str, at: int) -> Iterator[None]:
        """One round of a loop of properties."""
        before = self._indexes
        self._indexes = {**before, name.lower(): at}
        try:
            yield
        finally:
            self._indexes = before

    def _index(self, name: str | int = 0, offset: int = 0) -> Value:
        if isinstance(name, int):
            return self._index(self._current, name)
        if name.lower() not in self._indexes:
            raise Fault(
                f"there is no copy loop '{shown(name)}' here" if name else "no loop is here"
            )
        return self._indexes[name.lower()] + offset
