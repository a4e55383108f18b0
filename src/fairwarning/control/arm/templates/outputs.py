"""The outputs of a template, and how ARM spells their names."""

from typing import NamedTuple

from fairwarning.control.arm.call import Json
from fairwarning.control.arm.templates.faults import Fault, invalid, invalid_at, shown
from fairwarning.control.arm.templates.limits import OUTPUTS_MAX
from fairwarning.control.arm.templates.parameters import TYPES, ParameterType, type_called
from fairwarning.control.arm.templates.values import Value, kind_of, word_of
from fairwarning.control.arm.templates.walking import Walk


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
