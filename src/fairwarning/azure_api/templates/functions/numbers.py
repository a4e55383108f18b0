"""Functions of whole numbers, which have 64 bits as they have on Azure."""

from collections.abc import Callable, Sequence

from fairwarning.azure_api.templates.errors import Fault
from fairwarning.azure_api.templates.functions.signature import Function, takes, takes_many
from fairwarning.azure_api.templates.syntax import INT_MAX, INT_MIN
from fairwarning.azure_api.templates.values import Kind, Value

_RANGE_MAX = 10_000


def _kept_small(number: int) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise Fault("the result does not fit in 64 bits")
    return number


def _int(value: Value) -> int:
    if isinstance(value, str):
        digits = value.strip()
        if not digits.isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 20:
            raise Fault("the text is no whole number")
        return _kept_small(int(digits))
    assert isinstance(value, int | float)
    if not INT_MIN <= value <= INT_MAX:
        raise Fault("the result does not fit in 64 bits")
    return int(value)


def _div(one: int, other: int) -> int:
    if other == 0:
        raise Fault("one cannot divide by zero")
    quotient = abs(one) // abs(other)
    return _kept_small(quotient if (one < 0) == (other < 0) else -quotient)


def _mod(one: int, other: int) -> int:
    return one - other * _div(one, other)


def _range(start: int, count: int) -> list[Value]:
    if not 0 <= count <= _RANGE_MAX:
        raise Fault(f"the count must be between 0 and {_RANGE_MAX}")
    _kept_small(start + count)
    return list(range(start, start + count))


def _extreme(choose: Callable[[Sequence[int]], int]) -> Callable[..., Value]:
    def chosen(*values: Value) -> int:
        listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        numbers = [each for each in listed if isinstance(each, int) and not isinstance(each, bool)]
        if not numbers or len(numbers) != len(listed):
            raise Fault("give it whole numbers, or one array of them")
        return choose(numbers)

    return chosen


def _computed(compute: Callable[[int, int], int]) -> Function:
    return takes(lambda one, other: _kept_small(compute(one, other)), Kind.INT, Kind.INT)


FUNCTIONS = {
    "int": takes(_int, Kind.TEXT | Kind.INT | Kind.FLOAT),
    "add": _computed(lambda one, other: one + other),
    "sub": _computed(lambda one, other: one - other),
    "mul": _computed(lambda one, other: one * other),
    "div": _computed(_div),
    "mod": _computed(_mod),
    "min": takes_many(_extreme(min), Kind.INT | Kind.LIST),
    "max": takes_many(_extreme(max), Kind.INT | Kind.LIST),
    "range": takes(_range, Kind.INT, Kind.INT),
}
