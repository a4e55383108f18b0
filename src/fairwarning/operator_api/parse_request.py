"""Parses query, body and values of a request, or raises a Problem that names the field."""

import re
from collections.abc import Iterable
from typing import Any, TypeVar, get_origin

import msgspec

from fairwarning.common.durations import DURATION_EXAMPLES, DURATION_PATTERN, parse_duration_ms
from fairwarning.core.instants import Instant, parse_instant
from fairwarning.engine.protocols import Position, Store
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Document
from fairwarning.operator_api.schemas import In

BODY_BYTES_MAX = 1024 * 1024  # Far more than any body but a fleet needs.
FLEET_BYTES_MAX = 4 * 1024 * 1024  # A fleet of 100,000 instances with short names fits.
_PATH = re.compile(r" - at `\$?([^`]*)`$")
_NO_DURATION = f"Expected `str` matching regex {DURATION_PATTERN!r}"
_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d+|\.\.\.)\]")
Q = TypeVar("Q", bound=In)


def read_query(kind: type[Q], pairs: Iterable[tuple[str, str]]) -> Q:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    given: dict[str, Any] = {}
    for name, text in pairs:
        field = fields.get(name)
        if field is None:
            known = ", ".join([*fields, "why"])
            raise Problem(
                422,
                "unknown-parameter",
                f"{name[:100]!r} is no parameter of this operation; it has {known}",
            )
        if get_origin(field.type) is list:
            given.setdefault(name, []).append(text)
        elif name in given:
            raise Problem(422, "parameter-twice", f"{name!r} is given twice; give it once")
        else:
            given[name] = text
    try:
        return msgspec.convert(given, type=kind, strict=False)
    except msgspec.ValidationError as error:
        text, pointer = _explained(error)
        raise Problem(422, "parameter-invalid", text, pointer=pointer) from None


def read_body(kind: type[Any] | None, body: bytes, media_type: str, *, optional: bool) -> Any:
    if kind is None:
        if body.strip() not in (b"", b"{}", b"null"):
            raise Problem(422, "body-not-wanted", "this operation takes no body; leave it out")
        return None
    if not body and optional:
        return msgspec.convert({}, type=kind)
    _refuse_media_type(media_type, ("application/json",))
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        text, pointer = _explained(error)
        raise Problem(422, "body-invalid", text, pointer=pointer) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None


def read_document(body: bytes, media_type: str) -> Document:
    return Document(body, is_toml(media_type))


def is_toml(media_type: str) -> bool:
    """Return whether a fleet file is TOML and not JSON. Raises Problem if it is neither."""
    _refuse_media_type(media_type, ("application/toml", "application/json"))
    return media_type == "application/toml"


def decoded_json(body: bytes) -> object:
    """Return the decoded JSON. Raises Problem if the body is no JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None


def decoded_text(body: bytes) -> str:
    """Return the body as text. Raises Problem if it is no UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise Problem(
            422, "fleet-invalid", "this line is no UTF-8; save the file as UTF-8", line=line
        ) from None


def read_duration_ms(name: str, text: str) -> int:
    found = parse_duration_ms(text)
    if found is None:
        raise Problem(
            422,
            "duration-invalid",
            f"{name} is {text[:60]!r}, which is no duration; write one like {DURATION_EXAMPLES}",
            pointer=f"/{name}",
        )
    return found


def read_instant(name: str, text: str) -> Instant:
    found = parse_instant(text)
    if found is None:
        raise Problem(
            422,
            "instant-invalid",
            f"{name} is {text[:60]!r}, which is no RFC 3339 time with a zone; write one like "
            "2026-11-16T09:30:00Z",
            pointer=f"/{name}",
        )
    return found


def _refuse_media_type(given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise Problem(
            415,
            "media-type-unknown",
            f"the body is {given[:60] or 'of no stated type'!r}; send Content-Type: "
            + " or ".join(known),
        )


def _malformed(error: Exception) -> Problem:
    return Problem(400, "body-malformed", f"the body is no JSON ({error}); mend it"[:300])


def _explained(error: msgspec.ValidationError) -> tuple[str, str | None]:
    """Return msgspec's message and, separately, the JSON pointer to the wrong value."""
    text = str(error).replace(
        _NO_DURATION, f"This is no duration; write one like {DURATION_EXAMPLES}"
    )
    found = _PATH.search(text)
    if found is None:
        return text, None
    steps = [name or number for name, number in _STEP.findall(found[1])]
    pointer = "/" + "/".join(steps)
    return f"{_PATH.sub('', text)} at {pointer}", pointer


_POSITION = re.compile(r"[0-9]{1,18}(-[0-9]{1,18})?")


async def checked_position(store: Store, text: str) -> Position:
    """Return the text as a journal position. Raises Problem if it is invalid."""
    try:
        if not _POSITION.fullmatch(text):
            raise ValueError(text)
        await store.journal(after=Position(text), limit=1)
    except (ValueError, OverflowError):
        raise Problem(
            422, "cursor-invalid", "this is no position of the history; take one from an answer"
        ) from None
    return Position(text)
