"""Evaluates the syntax tree of an expression.

`if`, `and`, `or` and `coalesce` evaluate only the arguments that they need. So a template can refer
to a resource that exists only under a condition.
"""

from collections.abc import Mapping, Sequence

from fairwarning.azure_api.templates.errors import TemplateError, shorten
from fairwarning.azure_api.templates.functions import PURE_FUNCTIONS
from fairwarning.azure_api.templates.functions.signature import Function, refused
from fairwarning.azure_api.templates.limits import Budget
from fairwarning.azure_api.templates.syntax import Call, Index, Literal, Node, Property, parse
from fairwarning.azure_api.templates.values import Value, find_key, type_name

_LAZY = ("if", "and", "or", "coalesce")


class Evaluator:
    """Evaluates expressions. It caches syntax trees, because copies have the same expressions."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._trees: dict[str, Node] = {}

    def value(self, text: str, context_functions: Mapping[str, Function]) -> Value:
        """Evaluates an expression. Raises TemplateError.

        `context_functions` are the functions that depend on the place of the expression in the
        template.
        """
        if text not in self._trees:
            self.budget.spend(1 + len(text) // 4)
            self._trees[text] = parse(text)
        return _Evaluation(self.budget, context_functions).evaluate(self._trees[text])


class _Evaluation:
    def __init__(self, budget: Budget, context_functions: Mapping[str, Function]) -> None:
        self._budget = budget
        self._context_functions = context_functions

    def evaluate(self, node: Node) -> Value:
        self._budget.spend()
        if isinstance(node, Literal):
            return node.value
        with self._budget:
            value = self._call(node)
            for step in node.steps:
                value = self._step_into(value, step)
            return value

    def _call(self, call: Call) -> Value:
        name = call.name.lower()
        if name in _LAZY:
            return self._lazy(name, call)
        function = self._context_functions.get(name) or PURE_FUNCTIONS.get(name)
        if function is None:
            raise TemplateError(f"The template function '{shorten(call.name)}' is not valid here.")
        arguments = [self.evaluate(each) for each in call.arguments]
        self._budget.measure(arguments)
        value = function(call.name, arguments)
        if name in PURE_FUNCTIONS:
            self._budget.measure(value)
        return value

    def _lazy(self, name: str, call: Call) -> Value:
        arguments = call.arguments
        match name, len(arguments):
            case "if", 3:
                return self.evaluate(arguments[1] if self._truth(call, 0) else arguments[2])
            case "and", count if count >= 2:
                return all(self._truth(call, number) for number in range(count))
            case "or", count if count >= 2:
                return any(self._truth(call, number) for number in range(count))
            case "coalesce", count if count >= 1:
                return self._coalesce(arguments)
        wanted = {"if": "3", "coalesce": "at least 1"}.get(name, "at least 2")
        raise refused(call.name, f"it takes {wanted} argument(s) and got {len(arguments)}")

    def _truth(self, call: Call, number: int) -> bool:
        value = self.evaluate(call.arguments[number])
        if not isinstance(value, bool):
            raise refused(
                call.name,
                f"argument {number + 1} must be of type 'Boolean' and is of type "
                f"'{type_name(value)}'",
            )
        return value

    def _coalesce(self, nodes: Sequence[Node]) -> Value:
        for each in nodes:
            value = self.evaluate(each)
            if value is not None:
                return value
        return None

    def _step_into(self, value: Value, step: Property | Index) -> Value:
        self._budget.spend()
        key = step.name if isinstance(step, Property) else self.evaluate(step.node)
        match value, key:
            case dict(), str():
                return self._member(value, key)
            case list(), int() if not isinstance(key, bool):
                if not 0 <= key < len(value):
                    raise TemplateError(
                        f"The language expression property array index '{key}' is out of bounds."
                    )
                return value[key]
        raise TemplateError(
            f"The language expression property '{shorten(str(key))}' can't be evaluated on a value "
            f"of type '{type_name(value)}'."
        )

    def _member(self, value: dict[str, Value], key: str) -> Value:
        self._budget.spend(len(value) // 16)
        name = find_key(value, key)
        if name is None:
            raise TemplateError(
                f"The language expression property '{shorten(key)}' doesn't exist, available "
                f"properties are '{shorten(', '.join(list(value)[:20]))}'."
            )
        return value[name]
