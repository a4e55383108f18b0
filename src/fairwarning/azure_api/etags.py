"""Reads If-Match and If-None-Match, and makes the tags that they are compared with.

The caller checks the conditions where nobody else can change the resource before the write: under
the resource's lock, or before a write that fails if the record has changed.
"""

import hashlib
import uuid
from collections.abc import Mapping

import msgspec

from fairwarning.azure_api.errors import ArmError, Failure
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.engine.protocols import RecordChanged

_STATES = frozenset({"provisioningState", "instanceView"})
"""Properties that change although nobody has changed the resource."""


def content_tag(body: Json) -> str:
    """Returns a tag that changes with the content of the resource, whoever changed it."""
    properties = body.get("properties", {})
    lasting = {name: value for name, value in properties.items() if name not in _STATES}
    content = msgspec.json.encode({**body, "properties": lasting}, order="sorted")
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def record_tag(record: ResourceRecord) -> str:
    """Returns the tag of a resource that is only stored. It changes with each write."""
    tag = uuid.uuid5(uuid.NAMESPACE_URL, f"{record.unique_id}/{record.revision}")
    return f'W/"{tag}"'


def refuse_unmatched_record(call: ArmCall, record: ResourceRecord | None) -> None:
    """Raises ArmError with status 412 if a condition of the call does not hold for the record.

    The caller must then write with this record, so that the write fails if it has changed.
    """
    refuse_unmatched(call, None if record is None else record_tag(record))


def refuse_unmatched(call: ArmCall, tag: str | None) -> None:
    """Raises ArmError with status 412 if a condition of the call does not hold.

    `tag` is the tag of the resource as it is now. It is None if there is no such resource.
    """
    if call.if_match and not _names(call.if_match, tag):
        raise _failed(call, "if-match", call.if_match, "does not match", tag)
    if call.if_none_match and _names(call.if_none_match, tag):
        raise _failed(call, "if-none-match", call.if_none_match, "matches", tag)


def retried(handler: Handler) -> Handler:
    """Returns a handler that runs again if another request changed the record meanwhile."""

    async def answer(arm: Arm, call: ArmCall) -> Reply:
        while True:
            try:
                return await handler(arm, call)
            except RecordChanged:
                continue

    return answer


def tag_header(tag: str) -> Mapping[str, str]:
    return {"ETag": tag}


def _names(condition: str, tag: str | None) -> bool:
    """Returns whether the condition is `*` or lists the tag. Tags may be written without quotes."""
    if tag is None:
        return False
    words = [each.strip() for each in condition.split(",")]
    return "*" in words or _bare(tag) in map(_bare, words)


def _bare(tag: str) -> str:
    return tag.removeprefix("W/").strip('"')


def _failed(call: ArmCall, header: str, given: str, how: str, tag: str | None) -> ArmError:
    given = given[:200]
    if tag is None:
        message = f"Etag provided in {header} header {given} {how} any resource: there is none"
    else:
        message = f"Etag provided in {header} header {given} {how} etag {tag} of resource"
    if call.path.namespace != "Microsoft.Network":
        return ArmError(412, "PreconditionFailed", f"{message}.")
    detail = Failure(
        code="PreconditionFailedEtagMismatch",
        message=f"{message} {call.path.id} in NRP data store." if tag else f"{message}.",
    )
    return ArmError(412, "PreconditionFailed", "Precondition failed.", details=[detail])
