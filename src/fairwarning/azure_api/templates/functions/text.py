"""These template functions work on text."""

import base64
import binascii
import hashlib
import re
import uuid

import msgspec

from fairwarning.azure_api.templates.errors import TemplateError
from fairwarning.azure_api.templates.functions.signature import Function, takes, takes_many
from fairwarning.azure_api.templates.limits import TEXT_LENGTH_MAX
from fairwarning.azure_api.templates.values import Kind, Value, as_json, kind_of

_GUID_NAMESPACE = uuid.UUID("11fb06fb-712d-4ddd-98c7-e71bbd588830")
"""The namespace of Azure's function `guid`. With it, `guid` returns the same GUIDs as on Azure."""
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([0-9]{1,3})(?::([A-Za-z])([0-9]{0,2}))?\}|[{}]")
_DELIMITERS_MAX = 32
_TEXTS = Kind.TEXT | Kind.LIST


def to_text(value: Value) -> str:
    """Returns the text that a value becomes inside another text."""
    match value:
        case str():
            return value
        case bool():
            return "True" if value else "False"
        case None:
            return ""
        case _:
            return as_json(value)


def check_length(text: str) -> str:
    if len(text) > TEXT_LENGTH_MAX:
        raise too_long()
    return text


def too_long() -> TemplateError:
    return TemplateError(f"the text would have more than {TEXT_LENGTH_MAX} characters")


def _string(value: Value) -> str:
    return value if isinstance(value, str) else check_length(to_text(value))


def _format(pattern: str, *values: Value) -> str:
    length = len(pattern)

    def filled(placeholder: re.Match[str]) -> str:
        text = found(placeholder)
        nonlocal length
        length += len(text)
        if length > TEXT_LENGTH_MAX:
            raise too_long()
        return text

    def found(placeholder: re.Match[str]) -> str:
        if placeholder[0] in ("{{", "}}"):
            return placeholder[0][0]
        if placeholder[1] is None:
            raise TemplateError("write a brace that stands for itself twice")
        if int(placeholder[1]) >= len(values):
            raise TemplateError(f"there is no argument for '{placeholder[0]}'")
        return _formatted(
            values[int(placeholder[1])], placeholder[2] or "", int(placeholder[3] or 0)
        )

    return _PLACEHOLDER.sub(filled, pattern)


def _formatted(value: Value, letter: str, width: int) -> str:
    if not letter:
        return to_text(value)
    if kind_of(value) is not Kind.INT or letter not in "dDxX":
        raise TemplateError(
            f"the format '{letter}' is not supported for this value; use D or X, and an int"
        )
    assert isinstance(value, int)
    digits = f"{abs(value):x}" if letter in "xX" else f"{abs(value)}"
    digits = digits.upper() if letter == "X" else digits
    return ("-" if value < 0 else "") + digits.rjust(width, "0")


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        raise TemplateError("the text to replace is empty")
    if len(text) + text.count(old) * (len(new) - len(old)) > TEXT_LENGTH_MAX:
        raise too_long()
    return text.replace(old, new)


def _split(text: str, marks: Value) -> Value:
    chosen = [marks] if isinstance(marks, str) else marks
    assert isinstance(chosen, list)
    words = [each for each in chosen if isinstance(each, str) and each]
    if len(words) != len(chosen) or not 1 <= len(words) <= _DELIMITERS_MAX:
        raise TemplateError(f"give it 1 to {_DELIMITERS_MAX} delimiters that are not empty")
    return list(re.split("|".join(map(re.escape, words)), text))


def _join(parts: list[Value], mark: str) -> str:
    words = [to_text(each) for each in parts]
    if sum(map(len, words)) + len(mark) * len(words) > TEXT_LENGTH_MAX:
        raise too_long()
    return mark.join(words)


def _substring(text: str, start: int, length: int | None = None) -> str:
    taken = len(text) - start if length is None else length
    if start < 0 or taken < 0 or start + taken > len(text):
        raise TemplateError(
            "The index and length parameters must refer to a location within the string. The "
            f"index parameter: '{start}', the length parameter: '{taken}', the length of the "
            f"string parameter: '{len(text)}'"
        )
    return text[start : start + taken]


def _pad_left(value: Value, width: int, mark: str = " ") -> str:
    if len(mark) != 1:
        raise TemplateError("the padding must be one character")
    if not 0 <= width <= TEXT_LENGTH_MAX:
        raise TemplateError(f"the length must be between 0 and {TEXT_LENGTH_MAX}")
    return to_text(value).rjust(width, mark)


def _unique(*parts: str) -> str:
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return base64.b32encode(digest).decode().lower()[:13]


def _guid(*parts: str) -> str:
    return str(uuid.uuid5(_GUID_NAMESPACE, "-".join(parts)))


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        raise TemplateError("the text is no base64 of a string") from None


def _json(text: str) -> Value:
    try:
        value: Value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise TemplateError("the text is no JSON") from None
    return value


FUNCTIONS = {
    "format": Function(_format, (Kind.TEXT,), 1, Kind.ANY),
    "string": takes(_string, Kind.ANY),
    "tolower": takes(str.lower, Kind.TEXT),
    "toupper": takes(str.upper, Kind.TEXT),
    "trim": takes(str.strip, Kind.TEXT),
    "replace": takes(_replace, Kind.TEXT, Kind.TEXT, Kind.TEXT),
    "split": takes(_split, Kind.TEXT, _TEXTS),
    "join": takes(_join, Kind.LIST, Kind.TEXT),
    "substring": takes(_substring, Kind.TEXT, Kind.INT, Kind.INT, least=2),
    "startswith": takes(lambda t, w: t.lower().startswith(w.lower()), Kind.TEXT, Kind.TEXT),
    "endswith": takes(lambda t, w: t.lower().endswith(w.lower()), Kind.TEXT, Kind.TEXT),
    "indexof": takes(lambda t, w: t.lower().find(w.lower()), Kind.TEXT, Kind.TEXT),
    "lastindexof": takes(lambda t, w: t.lower().rfind(w.lower()), Kind.TEXT, Kind.TEXT),
    "padleft": takes(_pad_left, Kind.TEXT | Kind.INT, Kind.INT, Kind.TEXT, least=2),
    "uniquestring": takes_many(_unique, Kind.TEXT),
    "guid": takes_many(_guid, Kind.TEXT),
    "base64": takes(lambda t: check_length(base64.b64encode(t.encode()).decode()), Kind.TEXT),
    "base64tostring": takes(_from_base64, Kind.TEXT),
    "json": takes(_json, Kind.TEXT),
}
