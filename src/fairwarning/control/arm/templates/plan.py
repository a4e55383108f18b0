"""What a template asks for: resources in the order in which they are made, and outputs.

All is evaluated once when the plan is made, with nothing read: so whatever is wrong with the
template itself is found before anything is made, and what a resource refers to comes before it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairwarning.control.arm.call import Json
from fairwarning.control.arm.templates.evaluator import Evaluator
from fairwarning.control.arm.templates.expanding import Expansion, Planned
from fairwarning.control.arm.templates.faults import invalid
from fairwarning.control.arm.templates.functions.signature import Function
from fairwarning.control.arm.templates.limits import VARIABLES_MAX, Budget
from fairwarning.control.arm.templates.lookups import Lookup, Secrecy
from fairwarning.control.arm.templates.loops import Loops
from fairwarning.control.arm.templates.nesting import joined, parted
from fairwarning.control.arm.templates.ordering import Directory, needs, ordered
from fairwarning.control.arm.templates.outputs import (
    camel_cased,
    check_output,
    declared_outputs,
    evaluated,
    is_wanted,
)
from fairwarning.control.arm.templates.parameters import check, declared, given, missing
from fairwarning.control.arm.templates.references import References, Wanted
from fairwarning.control.arm.templates.surroundings import Surroundings
from fairwarning.control.arm.templates.values import Value
from fairwarning.control.arm.templates.walking import Walk

Read = Mapping[str, Json]
"""Resources as they are, by id in lower case."""


class Answer(NamedTuple):
    value: Json
    wanted: tuple[Wanted, ...]
    """What must be read first; the value is of no use until then."""


class Plan:
    """Raises ArmError: when it is made, if the template is not valid; or later."""

    def __init__(
        self, template: Json, parameters: object, place: Surroundings, budget: Budget | None = None
    ) -> None:
        """`budget` is that of the deployment around this one."""
        self.budget = budget or Budget()
        self._evaluator = Evaluator(self.budget)
        self._secrecy = Secrecy()
        self._place = place
        self._parameters = declared(template.get("parameters") or {})
        self._given = given(parameters or {}, self._parameters)
        self._variables = _variables(template.get("variables") or {})
        self._outputs = declared_outputs(template.get("outputs") or {})
        self._look_up()
        expansion = Expansion(self._walk, place.id_of, self.budget)
        found = expansion.of(template.get("resources") or [])
        self._directory = Directory(found, expansion.copies)
        self.needs, self.resources = self._in_order()
        self.outputs({})

    @property
    def parameters(self) -> Json:
        """As a deployment shows them: without secrets."""
        return {
            camel_cased(name): {"type": each.type.word}
            if each.type.is_secret
            else {"type": each.type.word, "value": self._parameter_values.value(name)}
            for name, each in self._parameters.items()
        }

    def body(self, planned: Planned, read: Read) -> Answer:
        references = References(read, self._directory.wanted)
        walk = self._walk(planned.name, planned.loops, references.functions())
        outer, inner = parted(planned)
        value = walk.value(outer)
        assert isinstance(value, dict)
        return Answer(joined(planned, value, inner), tuple(references.wanted.values()))

    def outputs(self, read: Read) -> Answer:
        """What has a secret in it has no value."""
        references = References(read, self._directory.wanted)
        shown: Json = {}
        for each in self._outputs:
            self._secrecy.seen = False
            before = len(references.wanted)
            if not is_wanted(each, self._walk(each.name, Loops())):
                continue
            value = evaluated(each, self._walk(each.name, Loops(), references.functions()))
            if len(references.wanted) > before:
                continue
            check_output(each, value)
            shown[camel_cased(each.name)] = {"type": each.type.word, "value": value}
            if each.type.is_secret or self._secrecy.seen:
                del shown[camel_cased(each.name)]["value"]
        return Answer(shown, tuple(references.wanted.values()))

    def _walk(self, name: str, loops: Loops, more: Mapping[str, Function] | None = None) -> Walk:
        return Walk(self._evaluator, name, {**self._functions, **(more or {})}, loops)

    def _look_up(self) -> None:
        """Makes every parameter and variable known, and sees that they are fit."""
        self._functions = self._place.functions()
        secrets = {name: each.type.is_secret for name, each in self._parameters.items()}
        self._parameter_values = Lookup("parameter", secrets, self._parameter, self._secrecy)
        self._functions |= self._parameter_values.functions()
        for name in self._parameters:
            self._parameter_values.value(name)
        names = dict.fromkeys(self._variables, False)
        variables = Lookup("variable", names, self._variable, self._secrecy)
        self._functions |= variables.functions()
        for name in self._variables:
            variables.value(name)

    def _parameter(self, name: str) -> Value:
        parameter = self._parameters[name]
        if name in self._given:
            value: Any = self._given[name]
        elif "defaultValue" in parameter.raw:
            value = self._walk(name, Loops()).value(parameter.raw["defaultValue"], "defaultValue")
        else:
            raise missing(name)
        check(parameter, value)
        return value  # type: ignore[no-any-return]

    def _variable(self, name: str) -> Value:
        variable = self._variables[name]
        value = self._walk(name, Loops()).value(variable.raw)
        return value[name] if variable.is_loop and isinstance(value, dict) else value

    def _in_order(self) -> tuple[dict[str, list[str]], list[Planned]]:
        found = self._directory.resources
        wanted = [n for n, each in enumerate(found) if each.is_wanted]
        needed = {
            number: needs(self._directory, number, self.body(found[number], {}).wanted)
            for number in wanted
        }
        order = [found[number] for number in ordered(found, needed)]
        by_id = {found[n].id: [found[other].id for other in sorted(needed[n])] for n in wanted}
        return by_id, order


class _Variable(NamedTuple):
    raw: object
    is_loop: bool = False
    """`raw` is an object that has the variable as its only member."""


def _variables(raw: object) -> dict[str, _Variable]:
    if not isinstance(raw, dict):
        raise invalid("The variables of a template must be an object")
    found: dict[str, _Variable] = {}
    for name, each in raw.items():
        loops = each if name == "copy" and isinstance(each, list) else None
        if loops is None:
            found[name] = _Variable(each)
        for loop in loops or ():
            if not isinstance(loop, dict) or not isinstance(loop.get("name"), str):
                raise invalid("A copy loop of variables has a name, a count and an input")
            found[loop["name"]] = _Variable({"copy": [loop]}, True)
    if len(found) > VARIABLES_MAX:
        raise invalid(f"A template has at most {VARIABLES_MAX} variables; this has {len(found)}")
    return found
