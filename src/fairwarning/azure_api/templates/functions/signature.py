"""Checks the number and the kinds of arguments of a template function."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairwarning.azure_api.templates.errors import TemplateError
from fairwarning.azure_api.templates.values import Kind, Value, kind_of, type_name, type_names


class Function(NamedTuple):
    apply: Callable[..., Value]
    """The implementation. It raises TemplateError with the reason, and the caller adds the name."""
    kinds: tuple[Kind, ...]
    least: int
    rest: Kind | None = None
    """The kind of all further arguments. If it is None, the function takes no further arguments."""

    def __call__(self, name: str, arguments: Sequence[Value]) -> Value:
        self._check(name, arguments)
        try:
            return self.apply(*arguments)
        except TemplateError as error:
            raise refused(name, str(error)) from None

    def _check(self, name: str, arguments: Sequence[Value]) -> None:
        most = len(self.kinds)
        if len(arguments) < self.least or (self.rest is None and len(arguments) > most):
            counts = f"{self.least}" if self.least == most else f"{self.least} to {most}"
            counts = f"at least {self.least}" if self.rest is not None else counts
            raise refused(name, f"it takes {counts} argument(s) and got {len(arguments)}")
        for number, each in enumerate(arguments):
            wanted = self.kinds[number] if number < most else self.rest
            if wanted is not None and kind_of(each) not in wanted:
                raise refused(
                    name,
                    f"argument {number + 1} must be of type '{type_names(wanted)}' and is of type "
                    f"'{type_name(each)}'",
                )


def takes(apply: Callable[..., Value], *kinds: Kind, least: int | None = None) -> Function:
    return Function(apply, kinds, len(kinds) if least is None else least)


def takes_many(apply: Callable[..., Value], kind: Kind, *, least: int = 1) -> Function:
    return Function(apply, (kind,) * least, least, kind)


def refused(name: str, why: str) -> TemplateError:
    return TemplateError(f"Unable to evaluate the template language function '{name}': {why}.")
