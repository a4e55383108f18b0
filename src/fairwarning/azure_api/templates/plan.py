"""What a template asks for: resources in the order in which they are made, and outputs.

All is evaluated once when the plan is made, with nothing read: so whatever is wrong with the
template itself is found before anything is made, and what a resource refers to comes before it.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.copies import Expansion, Planned
from fairwarning.azure_api.templates.dependency_order import Directory, needs, ordered
from fairwarning.azure_api.templates.errors import Fault, invalid, invalid_at, shown
from fairwarning.azure_api.templates.evaluator import Evaluator
from fairwarning.azure_api.templates.functions.signature import Function, takes
from fairwarning.azure_api.templates.limits import OUTPUTS_MAX, VARIABLES_MAX, Budget
from fairwarning.azure_api.templates.parameters import (
    TYPES,
    ParameterType,
    check,
    declared,
    given,
    missing,
    type_called,
)
from fairwarning.azure_api.templates.resolve import Loops, References, Walk, Wanted
from fairwarning.azure_api.templates.scope_functions import Surroundings
from fairwarning.azure_api.templates.syntax import escaped
from fairwarning.azure_api.templates.values import Kind, Value, kind_of, word_of

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


# Values by name that may depend on each other: parameters and variables.
class Secrecy:
    """Whether what was looked up since `seen` was last set to False had a secret in it."""

    def __init__(self) -> None:
        self.seen = False


class Lookup:
    """Each value is computed when it is first asked for."""

    def __init__(
        self,
        word: str,
        names: Mapping[str, bool],
        compute: Callable[[str], Value],
        secrecy: Secrecy,
    ) -> None:
        """`word` is `parameter` or `variable`; `names` say whether each is a secret itself."""
        self._word = word
        self._names = {name.lower(): name for name in names}
        self._secret = {name for name, is_secret in names.items() if is_secret}
        self._compute = compute
        self._secrecy = secrecy
        self._found: dict[str, tuple[Value, bool]] = {}
        self._under_way: set[str] = set()

    def functions(self) -> dict[str, Function]:
        return {f"{self._word}s": takes(self.value, Kind.TEXT)}

    def value(self, name: str) -> Value:
        known = self._names.get(name.lower())
        if known is None:
            raise Fault(f"The template {self._word} '{shown(name)}' is not found")
        if known not in self._found:
            self._found[known] = self._computed(known)
        value, is_secret = self._found[known]
        self._secrecy.seen |= is_secret
        return value

    def _computed(self, name: str) -> tuple[Value, bool]:
        if name in self._under_way:
            raise Fault(f"the {self._word} '{shown(name)}' depends on itself")
        self._under_way.add(name)
        before, self._secrecy.seen = self._secrecy.seen, name in self._secret
        value = self._compute(name)
        is_secret, self._secrecy.seen = self._secrecy.seen, before
        self._under_way.discard(name)
        return value, is_secret


# Templates within templates.
def parted(planned: Planned) -> tuple[Json, object]:
    """What this template evaluates of a resource, and what it leaves to another."""
    properties = planned.raw.get("properties")
    if not planned.is_deployment or not isinstance(properties, dict) or not _is_inner(properties):
        return planned.raw, None
    outer = {name: value for name, value in properties.items() if name != "template"}
    return {**planned.raw, "properties": outer}, properties.get("template")


def joined(planned: Planned, body: Json, inner: object) -> Json:
    properties = body.get("properties")
    if not planned.is_deployment or not isinstance(properties, dict):
        return body
    template = _escaped(properties.get("template")) if inner is None else inner
    return {**body, "properties": {**properties, "template": template}}


def _is_inner(properties: Json) -> bool:
    options = properties.get("expressionEvaluationOptions")
    scope = options.get("scope") if isinstance(options, dict) else None
    return isinstance(scope, str) and scope.lower() == "inner"


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return escaped(value)
        case dict():
            return {escaped(name): _escaped(each) for name, each in value.items()}
        case list():
            return [_escaped(each) for each in value]
        case _:
            return value


# The outputs of a template, and how ARM spells their names.
class Output(NamedTuple):
    name: str
    type: ParameterType
    raw: Json


def camel_cased(name: str) -> str:
    """`VMSS` is answered as `vmss`, `VMName` as `vmName`."""
    letters = list(name)
    for at, letter in enumerate(letters):
        is_last = at + 1 == len(letters)
        if not letter.isupper() or (at and not is_last and not letters[at + 1].isupper()):
            break
        letters[at] = letter.lower()
    return "".join(letters)


def declared_outputs(raw: object) -> list[Output]:
    """From `outputs` of a template. Raises ArmError."""
    if not isinstance(raw, dict):
        raise invalid("The outputs of a template must be an object")
    if len(raw) > OUTPUTS_MAX:
        raise invalid(f"A template has at most {OUTPUTS_MAX} outputs; this has {len(raw)}")
    found = []
    for name, each in raw.items():
        type = type_called(each.get("type")) if isinstance(each, dict) else None
        if type is None or not ("value" in each or "copy" in each):
            raise invalid(
                f"The template output '{shown(name)}' is not valid: it needs a value, and a type, "
                f"which is one of {', '.join(TYPES)}"
            )
        found.append(Output(name, type, each))
    return found


def is_wanted(output: Output, walk: Walk) -> bool:
    return walk.value(output.raw.get("condition", True), "condition") is not False


def evaluated(output: Output, walk: Walk) -> Value:
    """None while it refers to what has not been read. Raises ArmError."""
    copy = output.raw.get("copy")
    if copy is None:
        return walk.value(output.raw["value"], "value")
    if not isinstance(copy, dict):
        raise invalid_at(output.name, "copy", Fault("it must be an object"))
    made = walk.value({"copy": [{**copy, "name": output.name}]})
    assert isinstance(made, dict)
    return made[output.name]


def check_output(output: Output, value: Value) -> None:
    if kind_of(value) is not output.type.kind:
        raise invalid_at(
            output.name,
            "value",
            Fault(
                f"Template output JToken type is not valid. Expected '{output.type.expected}'. "
                f"Actual '{word_of(value)}'."
            ),
        )
