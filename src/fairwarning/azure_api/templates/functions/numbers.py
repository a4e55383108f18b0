"""These template functions work on integers, which have 64 bits as on Azure."""

from collections.abc import Callable, Sequence

from fairwarning.azure_api.templates.errors import TemplateError
from fairwarning.azure_api.templates.functions.signature import Function, takes, takes_many
from fairwarning.azure_api.templates.syntax import INT_MAX, INT_MIN
from fairwarning.azure_api.templates.values import Kind, Value

_RANGE_MAX = 10_000


def _checked_int(number: int) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise TemplateError("the result does not fit in 64 bits")
    return number


def _int(value: Value) -> int:
    if isinstance(value, str):
        digits = value.strip()
        if not digits.isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 20:
            raise TemplateError("the text is no whole number")
        return _checked_int(int(digits))
    assert isinstance(value, int | float)
    if not INT_MIN <= value <= INT_MAX:
        raise TemplateError("the result does not fit in 64 bits")
    return int(value)


def _div(one: int, other: int) -> int:
    if other == 0:
        raise TemplateError("one cannot divide by zero")
    quotient = abs(one) // abs(other)
    return _checked_int(quotient if (one < 0) == (other < 0) else -quotient)


def _mod(one: int, other: int) -> int:
    return one - other * _div(one, other)


def _range(start: int, count: int) -> list[Value]:
    if not 0 <= count <= _RANGE_MAX:
        raise TemplateError(f"the count must be between 0 and {_RANGE_MAX}")
    _checked_int(start + count)
    return list(range(start, start + count))


def _min_or_max(choose: Callable[[Sequence[int]], int]) -> Callable[..., Value]:
    def chosen(*values: Value) -> int:
        listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        numbers = [each for each in listed if isinstance(each, int) and not isinstance(each, bool)]
        if not numbers or len(numbers) != len(listed):
            raise TemplateError("give it whole numbers, or one array of them")
        return choose(numbers)

    return chosen


def _arithmetic(compute: Callable[[int, int], int]) -> Function:
    return takes(lambda one, other: _checked_int(compute(one, other)), Kind.INT, Kind.INT)


FUNCTIONS = {
    "int": takes(_int, Kind.TEXT | Kind.INT | Kind.FLOAT),
    "add": _arithmetic(lambda one, other: one + other),
    "sub": _arithmetic(lambda one, other: one - other),
    "mul": _arithmetic(lambda one, other: one * other),
    "div": _arithmetic(_div),
    "mod": _arithmetic(_mod),
    "min": takes_many(_min_or_max(min), Kind.INT | Kind.LIST),
    "max": takes_many(_min_or_max(max), Kind.INT | Kind.LIST),
    "range": takes(_range, Kind.INT, Kind.INT),
}
