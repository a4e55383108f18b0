"""Resolves the expressions inside a value of a template.

A `reference` to a resource that was not read yet becomes null, and the resource is added to
`References.wanted`. After the resource was read, the value must be resolved again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.errors import TemplateError, invalid_member, shorten
from fairwarning.azure_api.templates.evaluator import Evaluator
from fairwarning.azure_api.templates.functions.signature import Function, takes
from fairwarning.azure_api.templates.limits import copies_of
from fairwarning.azure_api.templates.syntax import is_expression, unescaped
from fairwarning.azure_api.templates.values import Kind, Value

_ROUND = 4
"""The work of one round of a loop, without the work for its value."""


class Loops:
    """The positions of the loops around an expression. They are the results of `copyIndex`.

    `current` is the copy loop of the resource. `copyIndex` without a name returns its position.
    """

    def __init__(self, indexes: Mapping[str, int] | None = None, current: str = "") -> None:
        self._indexes = dict(indexes or {})
        self._current = current.lower()

    def functions(self) -> dict[str, Function]:
        return {"copyindex": takes(self._index, Kind.TEXT | Kind.INT, Kind.INT, least=0)}

    def of_resource(self, name: str, at: int) -> "Loops":
        return Loops({**self._indexes, name.lower(): at}, name)

    @contextmanager
    def within(self, name: str, at: int) -> Iterator[None]:
        """Sets the position of a loop inside the resource for one round."""
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
            raise TemplateError(
                f"there is no copy loop '{shorten(name)}' here" if name else "no loop is here"
            )
        return self._indexes[name.lower()] + offset


class Resolver:
    """Resolves the values of one resource, parameter, variable or output.

    If a value is not valid, it raises an ArmError that names the place of the mistake.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        name: str,
        functions: Mapping[str, Function],
        loops: Loops | None = None,
    ) -> None:
        self._evaluator = evaluator
        self._name = name
        self._loops = loops or Loops()
        self._functions = {**functions, **self._loops.functions()}
        self._where: list[str] = []

    def value(self, raw: object, place: str = "") -> Value:
        self._where = []
        try:
            return self._member(place, raw) if place else self._value(raw)
        except TemplateError as error:
            raise invalid_member(self._name, ".".join(self._where), error) from None

    def text(self, raw: object, place: str) -> str:
        value = self.value(raw, place)
        if not isinstance(value, str) or not value:
            raise invalid_member(
                self._name, place, TemplateError("it must be a string that is not empty")
            )
        return value

    def _member(self, name: str, raw: object) -> Value:
        # After an error the place stays in the list, because the message needs it.
        self._where.append(name)
        value = self._value(raw)
        self._where.pop()
        return value

    def _value(self, raw: object) -> Value:
        budget = self._evaluator.budget
        budget.spend()
        match raw:
            case str() if is_expression(raw):
                return self._expression(raw)
            case str():
                budget.measure(raw)
                return unescaped(raw)
            case dict():
                with budget:
                    return self._object(raw)
            case list():
                with budget:
                    return [self._member(f"{at}", each) for at, each in enumerate(raw)]
            case _:
                return raw  # type: ignore[return-value]

    def _expression(self, text: str) -> Value:
        try:
            with self._evaluator.budget:
                return self._evaluator.value(text, self._functions)
        except NotReadYet:
            return None

    def _object(self, raw: dict[str, object]) -> Value:
        found: dict[str, Value] = {}
        for key, each in raw.items():
            if key == "copy" and isinstance(each, list):
                found.update(self._copies(each))
            else:
                found[self._key(key)] = self._member(key, each)
        return found

    def _key(self, raw: str) -> str:
        if not is_expression(raw):
            return unescaped(raw)
        value = self._expression(raw)
        if not isinstance(value, str):
            raise TemplateError("the name of a property must be a string that is known beforehand")
        return value

    def _copies(self, loops: list[object]) -> dict[str, Value]:
        """Expands `"copy": [{"name", "count", "input"}]` into arrays of these names."""
        found: dict[str, Value] = {}
        for loop in loops:
            match loop:
                case {"name": str(name), "count": count, "input": each}:
                    times = copies_of(self._member("count", count))
                    found[name] = [self._copied(name, at, each) for at in range(times)]
                case _:
                    raise TemplateError(
                        "a copy loop of properties has a name, a count and an input"
                    )
        return found

    def _copied(self, name: str, at: int, raw: object) -> Value:
        self._evaluator.budget.spend(_ROUND)
        with self._loops.within(name, at):
            return self._member(name, raw)


class NotReadYet(Exception):
    """The resource was not read yet. It has been added to `References.wanted`."""


class WantedResource(NamedTuple):
    id: str
    api_version: str
    """The api-version to read the resource with. If it is empty, the newest one is used."""


class References:
    """Implements `reference`. `read` has the resources that were read, by id in lower case.

    `id_of` finds a resource of the template by id or name, and `all_of` the ids of the resources
    with a symbolic name.
    """

    def __init__(
        self,
        read: Mapping[str, Json],
        id_of: Callable[[str], WantedResource | None],
        all_of: Callable[[str], list[WantedResource]],
    ) -> None:
        self._read = read
        self._id_of = id_of
        self._all_of = all_of
        self.wanted: dict[str, WantedResource] = {}

    def functions(self) -> dict[str, Function]:
        return {
            "reference": takes(self._reference, Kind.TEXT, Kind.TEXT, Kind.TEXT, least=1),
            "references": takes(self._references, Kind.TEXT, Kind.TEXT, least=1),
        }

    def _references(self, symbol: str, whole: str = "") -> Value:
        ids = [each.id for each in self._all_of(symbol)]
        for wanted in self._all_of(symbol):
            if wanted.id.lower() not in self._read:
                self.wanted[wanted.id.lower()] = wanted
        if any(id.lower() not in self._read for id in ids):
            raise NotReadYet
        return [self._reference(id, "", whole) for id in ids]

    def _reference(self, name: str, api_version: str = "", whole: str = "") -> Value:
        wanted = self._id_of(name)
        if wanted is None and not name.startswith("/"):
            raise TemplateError(
                f"The template reference '{shorten(name)}' is not valid: could not find template "
                "resource or resource copy with this name"
            )
        wanted = wanted or WantedResource(name, "")
        found = self._read.get(wanted.id.lower())
        if found is None:
            self.wanted[wanted.id.lower()] = WantedResource(
                wanted.id, api_version or wanted.api_version
            )
            raise NotReadYet
        value: Value = found if whole.lower() == "full" else found.get("properties", {})
        return value
