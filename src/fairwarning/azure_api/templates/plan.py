"""Plans a template. The plan has the resources in the order of their creation, and the outputs.

Everything is evaluated once when the plan is made, before any resource is read. So mistakes in the
template are found before anything is created. This also shows which resources refer to others, and
must be created after them.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.default_functions import default_functions, misplaced_functions
from fairwarning.azure_api.templates.dependency_order import ResourceIndex, creation_order, needs_of
from fairwarning.azure_api.templates.errors import TemplateError, invalid, invalid_member, shorten
from fairwarning.azure_api.templates.evaluator import Evaluator
from fairwarning.azure_api.templates.functions.signature import Function, takes
from fairwarning.azure_api.templates.limits import OUTPUTS_MAX, VARIABLES_MAX, Budget
from fairwarning.azure_api.templates.parameters import (
    TYPES,
    ParameterType,
    check_value,
    find_type,
    missing_value,
    read_parameters,
    read_values,
)
from fairwarning.azure_api.templates.resolve import Loops, References, Resolver, WantedResource
from fairwarning.azure_api.templates.resource_copies import PlannedResource, ResourceExpansion
from fairwarning.azure_api.templates.scope_functions import DeploymentContext
from fairwarning.azure_api.templates.syntax import escaped
from fairwarning.azure_api.templates.values import Kind, Value, kind_of, type_name

Read = Mapping[str, Json]
"""The existing resources that were read, by id in lower case."""
_START = "#/definitions/"
_STEPS_MAX = 20  # Definitions that refer to each other in a circle end here.


class PlannedValue(NamedTuple):
    value: Json
    wanted: tuple[WantedResource, ...]
    """The resources that must be read first. The value is not valid until they were read."""


class Plan:
    """The plan of one template.

    The constructor and the methods raise ArmError if the template is not valid.
    """

    def __init__(
        self,
        template: Json,
        parameters: object,
        context: DeploymentContext,
        budget: Budget | None = None,
    ) -> None:
        """Makes the plan. A nested deployment gets the `budget` of the outer deployment."""
        self.budget = budget or Budget()
        self._evaluator = Evaluator(self.budget)
        self._secrecy = SecretTracker()
        self._context = context
        types = template.get("definitions")
        self._parameters = read_parameters(
            with_definitions(template.get("parameters") or {}, types)
        )
        self._given = read_values(parameters or {}, self._parameters)
        self._variables = _variables(template.get("variables") or {})
        self._outputs = read_outputs(with_definitions(template.get("outputs") or {}, types))
        self._compute_values()
        version = str(template.get("languageVersion", "1.0"))
        expansion = ResourceExpansion(
            self._resolver, context.id_of, self.budget, is_symbolic=version.startswith("2.")
        )
        found = expansion.of(template.get("resources") or [])
        self._index = ResourceIndex(found, expansion.copies)
        self.needs, self.resources = self._order()
        self.outputs({})

    @property
    def parameters(self) -> Json:
        """The parameters in the form that a deployment shows, without secrets."""
        return {
            camel_case(name): {"type": each.type.word}
            if each.type.is_secret
            else {"type": each.type.word, "value": self._parameters_by_name.value(name)}
            for name, each in self._parameters.items()
        }

    def body(self, planned: PlannedResource, read: Read) -> PlannedValue:
        references = self._references(read)
        resolver = self._resolver(planned.name, planned.loops, references.functions())
        outer, inner = split_nested(planned)
        value = resolver.value(outer)
        assert isinstance(value, dict)
        return PlannedValue(join_nested(planned, value, inner), tuple(references.wanted.values()))

    def outputs(self, read: Read) -> PlannedValue:
        """Evaluates the outputs. An output that contains a secret has no value."""
        references = self._references(read)
        found: Json = {}
        for each in self._outputs:
            self._secrecy.seen = False
            before = len(references.wanted)
            if not is_wanted(each, self._resolver(each.name, Loops())):
                continue
            value = evaluate_output(
                each, self._resolver(each.name, Loops(), references.functions())
            )
            if len(references.wanted) > before:
                continue
            check_output(each, value)
            found[camel_case(each.name)] = {"type": each.type.word, "value": value}
            if each.type.is_secret or self._secrecy.seen:
                del found[camel_case(each.name)]["value"]
        return PlannedValue(found, tuple(references.wanted.values()))

    def _references(self, read: Read) -> References:
        def all_of(symbol: str) -> list[WantedResource]:
            resources = [each for each in self._index.all_of(symbol) if each.is_wanted]
            return [WantedResource(each.id, each.api_version) for each in resources]

        return References(read, self._index.wanted, all_of)

    def _resource_info(self, symbol: str) -> Value:
        found = self._index.all_of(symbol)
        if len(found) != 1:
            raise TemplateError(f"'{shorten(symbol)}' names {len(found)} resources; name one")
        each = found[0]
        return {
            "id": each.id,
            "name": each.name,
            "type": each.type,
            "apiVersion": each.api_version,
        }

    def _resolver(
        self, name: str, loops: Loops, more: Mapping[str, Function] | None = None
    ) -> Resolver:
        return Resolver(self._evaluator, name, {**self._functions, **(more or {})}, loops)

    def _compute_values(self) -> None:
        """Computes and checks every parameter and variable."""
        self._functions = self._context.functions() | misplaced_functions()
        self._functions["resourceinfo"] = takes(self._resource_info, Kind.TEXT)
        self._for_defaults = default_functions(self._context.now, self._context.seed)
        secrets = {name: each.type.is_secret for name, each in self._parameters.items()}
        self._parameters_by_name = NamedValues("parameter", secrets, self._parameter, self._secrecy)
        self._functions |= self._parameters_by_name.functions()
        for name in self._parameters:
            self._parameters_by_name.value(name)
        names = dict.fromkeys(self._variables, False)
        variables = NamedValues("variable", names, self._variable, self._secrecy)
        self._functions |= variables.functions()
        for name in self._variables:
            variables.value(name)

    def _parameter(self, name: str) -> Value:
        parameter = self._parameters[name]
        if name in self._given:
            value: Any = self._given[name]
        elif "defaultValue" in parameter.raw:
            value = self._resolver(name, Loops(), self._for_defaults).value(
                parameter.raw["defaultValue"], "defaultValue"
            )
        elif parameter.raw.get("nullable") is True:
            return None
        else:
            raise missing_value(name)
        if value is not None or parameter.raw.get("nullable") is not True:
            check_value(parameter, value)
        return value  # type: ignore[no-any-return]

    def _variable(self, name: str) -> Value:
        variable = self._variables[name]
        value = self._resolver(name, Loops()).value(variable.raw)
        return value[name] if variable.is_loop and isinstance(value, dict) else value

    def _order(self) -> tuple[dict[str, list[str]], list[PlannedResource]]:
        found = self._index.resources
        wanted = [n for n, each in enumerate(found) if each.is_wanted]
        needed = {
            number: needs_of(self._index, number, self.body(found[number], {}).wanted)
            for number in wanted
        }
        order = [found[number] for number in creation_order(found, needed)]
        by_id = {found[n].id: [found[other].id for other in sorted(needed[n])] for n in wanted}
        return by_id, order


class _Variable(NamedTuple):
    raw: object
    is_loop: bool = False
    """True if `raw` is an object that has the variable as its only member."""


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


class SecretTracker:
    """Remembers in `seen` whether a value that was looked up contained a secret."""

    def __init__(self) -> None:
        self.seen = False


class NamedValues:
    """Parameters or variables. Each is computed at its first use, as it may depend on others."""

    def __init__(
        self,
        word: str,
        names: Mapping[str, bool],
        compute: Callable[[str], Value],
        secrecy: SecretTracker,
    ) -> None:
        """`word` is `parameter` or `variable`. `names` maps each name to whether it is a secret."""
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
            raise TemplateError(f"The template {self._word} '{shorten(name)}' is not found")
        if known not in self._found:
            self._found[known] = self._computed(known)
        value, is_secret = self._found[known]
        self._secrecy.seen |= is_secret
        return value

    def _computed(self, name: str) -> tuple[Value, bool]:
        if name in self._under_way:
            raise TemplateError(f"the {self._word} '{shorten(name)}' depends on itself")
        self._under_way.add(name)
        before, self._secrecy.seen = self._secrecy.seen, name in self._secret
        value = self._compute(name)
        is_secret, self._secrecy.seen = self._secrecy.seen, before
        self._under_way.discard(name)
        return value, is_secret


def split_nested(planned: PlannedResource) -> tuple[Json, object]:
    """Returns the part of a resource that this template evaluates, and the nested template.

    The nested template is None unless the resource is a deployment with the evaluation scope
    `inner`.
    """
    properties = planned.raw.get("properties")
    if not planned.is_deployment or not isinstance(properties, dict) or not _is_inner(properties):
        return planned.raw, None
    outer = {name: value for name, value in properties.items() if name != "template"}
    return {**planned.raw, "properties": outer}, properties.get("template")


def join_nested(planned: PlannedResource, body: Json, inner: object) -> Json:
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


class Output(NamedTuple):
    name: str
    type: ParameterType
    raw: Json


def camel_case(name: str) -> str:
    """Spells a name as ARM does in its answers: `VMSS` as `vmss`, `VMName` as `vmName`."""
    letters = list(name)
    for at, letter in enumerate(letters):
        is_last = at + 1 == len(letters)
        if not letter.isupper() or (at and not is_last and not letters[at + 1].isupper()):
            break
        letters[at] = letter.lower()
    return "".join(letters)


def read_outputs(raw: object) -> list[Output]:
    """Reads `outputs` of a template. Raises ArmError."""
    if not isinstance(raw, dict):
        raise invalid("The outputs of a template must be an object")
    if len(raw) > OUTPUTS_MAX:
        raise invalid(f"A template has at most {OUTPUTS_MAX} outputs; this has {len(raw)}")
    found = []
    for name, each in raw.items():
        type = find_type(each.get("type")) if isinstance(each, dict) else None
        if type is None or not ("value" in each or "copy" in each):
            raise invalid(
                f"The template output '{shorten(name)}' is not valid: it needs a value, and a "
                f"type, which is one of {', '.join(TYPES)}"
            )
        found.append(Output(name, type, each))
    return found


def is_wanted(output: Output, resolver: Resolver) -> bool:
    return resolver.value(output.raw.get("condition", True), "condition") is not False


def evaluate_output(output: Output, resolver: Resolver) -> Value:
    """Returns the value of the output. A reference that was not read yet becomes None.

    Raises ArmError.
    """
    copy = output.raw.get("copy")
    if copy is None:
        return resolver.value(output.raw["value"], "value")
    if not isinstance(copy, dict):
        raise invalid_member(output.name, "copy", TemplateError("it must be an object"))
    values = resolver.value({"copy": [{**copy, "name": output.name}]})
    assert isinstance(values, dict)
    return values[output.name]


def check_output(output: Output, value: Value) -> None:
    if kind_of(value) is not output.type.kind:
        raise invalid_member(
            output.name,
            "value",
            TemplateError(
                f"Template output JToken type is not valid. Expected '{output.type.expected}'. "
                f"Actual '{type_name(value)}'."
            ),
        )


def with_definitions(members: object, definitions: object) -> Any:
    """Returns `parameters` or `outputs` of a template without `$ref`. Raises ArmError."""
    if not isinstance(members, dict):
        return members
    known = definitions if isinstance(definitions, dict) else {}
    return {name: _resolved(each, known) for name, each in members.items()}


def _resolved(raw: Any, known: dict[str, Any]) -> Any:
    for _ in range(_STEPS_MAX):
        if not isinstance(raw, dict) or "$ref" not in raw:
            return raw
        target = str(raw["$ref"])
        name = target.removeprefix(_START)
        definition = known.get(name)
        if not target.startswith(_START) or not isinstance(definition, dict):
            break
        rest = {key: value for key, value in raw.items() if key != "$ref"}
        raw = {**definition, **rest}
    raise invalid(f"The type '{shorten(str(raw['$ref']))}' is not defined in the template")
