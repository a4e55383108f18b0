"""Brings the body of a request into the form of its type. Pure.

ARM's names are compared without regard to case, and a name that the type does not have is refused:
otherwise a misspelt notice profile would mean that there is no notice.
"""

from dataclasses import replace
from typing import Any

from fairwarning.azure_api.body_types.tables import BodyType, Table, body_type
from fairwarning.azure_api.body_values import wrong_kind
from fairwarning.azure_api.errors import ArmError, Failure, invalid_value
from fairwarning.azure_api.request import ArmCall, Json

_ENVELOPE = frozenset({
    "kind", "sku", "plan", "identity", "zones", "managedby", "extendedlocation", "placement",
    "scale", "etag", "systemdata", "location", "tags", "id", "name", "type",
})  # fmt: skip
"""Members that ARM knows on every resource. A type that has no use for one ignores it."""
_WITHOUT_ENVELOPE = frozenset({"TagsResource", "TagsPatchResource"})
"""Types in which nothing is ignored: tags beside `properties` would mean that there are none."""
_INT_MAX = 2**31 - 1
_DIGITS_MAX = 10
_ROOTS = {"ResourceGroup": "ResourceGroupDefinition"}


def with_known_members(call: ArmCall) -> ArmCall:
    """Returns the call with Azure's names in its body, and without read-only members.

    Templates write some booleans and numbers as text. Such a text becomes a boolean or a number.
    Nulls stay. Raises ArmError if a member is unknown or has the wrong kind.
    """
    found = body_type(call.path, call.method) if call.body is not None else None
    if call.body is None or found is None:
        return call
    return replace(call, body=_Conformer(found, call.path.namespace).root(call.body))


class _Conformer:
    def __init__(self, type: BodyType, namespace: str) -> None:
        self._table: Table = type.table
        self._root = type.name
        self._namespace = namespace

    def root(self, body: Json) -> Json:
        known = self._table[self._root]
        is_plain = "properties" not in known or self._root in _WITHOUT_ENVELOPE
        ignored = frozenset() if is_plain else _ENVELOPE - known.keys()
        envelope = {n for n in body if n.lower() in ignored}
        return self._object({n: body[n] for n in body if n not in envelope}, self._root, "")

    def _object(self, value: Json, type: str, path: str) -> Json:
        known = self._table[type]
        found: Json = {}
        seen: set[str] = set()
        for name, each in value.items():
            where = f"{path}.{name}" if path else name
            member = known.get(name.lower())
            if member is None:
                raise self._unknown(name, type, where)
            if member.name in seen:
                raise self._refusal(f"The member '{member.name[:100]}' is there twice.", where)
            seen.add(member.name)
            if not member.is_read_only:
                found[member.name] = self._value(each, member.kind, where)
        return found

    def _value(self, value: Any, kind: str, path: str) -> Any:
        if value is None or kind == "any":
            return value
        match kind[0]:
            case "[":
                if not isinstance(value, list):
                    raise wrong_kind(path, "a list")
                return [self._value(v, kind[1:], f"{path}[{at}]") for at, v in enumerate(value)]
            case "{":
                if not isinstance(value, dict):
                    raise wrong_kind(path, "an object")
                if kind == "{str":
                    return value  # Tags and such: whoever reads them checks their values.
                return {n: self._value(v, kind[1:], f"{path}.{n}") for n, v in value.items()}
            case "=":
                return _word(value, kind[1:].split("|"), path)
            case _:
                pass
        if kind in self._table:
            if not isinstance(value, dict):
                raise wrong_kind(path, "an object")
            return self._object(value, kind, path)
        return _scalar(value, kind, path)

    def _unknown(self, name: str, type: str, path: str) -> ArmError:
        owner = self._spoken_type(type, path)
        return self._refusal(
            f"Could not find member '{name[:100]}' on object of type '{owner}'. "
            f"Path '{path[:400]}'.",
            path,
        )

    def _spoken_type(self, type: str, path: str) -> str:
        """Returns the name of a type in Azure's error messages."""
        if self._is_on_top(path):
            return _ROOTS.get(type, "ResourceDefinition")
        properties = self._table[self._root].get("properties")
        if properties is not None and type == properties.kind:
            return "Properties"
        short = type.removeprefix("VirtualMachineScaleSet")
        return "VirtualMachineProfile" if short == "VMProfile" else short

    def _is_on_top(self, path: str) -> bool:
        """Returns whether the path names a top-level member of a resource. ARM itself reads it."""
        return "." not in path and "properties" in self._table[self._root]

    def _refusal(self, message: str, path: str) -> ArmError:
        if self._is_on_top(path):
            return ArmError(
                400,
                "InvalidRequestContent",
                f"The request content was invalid and could not be deserialized: '{message}'.",
            )
        if self._namespace == "Microsoft.Network":
            detail = Failure(code="InvalidJson", message=message)
            return ArmError(
                400, "InvalidRequestFormat", "Cannot parse the request.", details=[detail]
            )
        return ArmError(400, "BadRequest", message, target=path[:400])


def _word(value: Any, words: list[str], path: str) -> str:
    """Returns the word in Azure's spelling. A word that is not in the list stays as it is."""
    if not isinstance(value, str):
        raise wrong_kind(path, "a string")
    return next((each for each in words if each.lower() == value.lower()), value)


def _scalar(value: Any, kind: str, path: str) -> Any:
    if isinstance(value, dict | list):
        names = {"int": "a number", "num": "a number", "bool": "a boolean"}
        raise wrong_kind(path, names.get(kind, "a string"))
    if kind == "bool":
        return _boolean(value, path)
    if kind in ("int", "num"):
        return _number(value, kind, path)
    if isinstance(value, bool):
        raise wrong_kind(path, "a string")
    return str(value) if isinstance(value, int | float) else value


def _number(value: Any, kind: str, path: str) -> int | float:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        value = int(value)
    if kind == "num" and isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _INT_MAX:
        return value
    wanted = "a number" if kind == "num" else "a whole number that fits into 32 bits"
    raise invalid_value(path[:400], value, f"use {wanted}")


def _boolean(value: Any, path: str) -> bool:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        raise wrong_kind(path, "a boolean")
    return word == "true"
