"""Reads If-Match and If-None-Match, and makes the tags that they are compared with.

The caller checks the conditions where nobody else can change the resource before the write: under
the resource's lock, or before a write that fails if the record has changed.

Locks keep other requests to ARM away in between, but no fleet file and no operator. Therefore the
first change of each scope is made only if the scope is still as it was when the tag was compared.
Otherwise nothing is changed, and the check is made again (`checked_change`).
"""

import dataclasses
import hashlib
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

import msgspec

from fairwarning.azure_api.errors import ArmError, Failure
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.core.commands import Command
from fairwarning.core.model import Actor, EventId, Scope, ScopeId
from fairwarning.core.pending_deletions import leavers
from fairwarning.engine.protocols import Fence, Receipt, RecordChanged
from fairwarning.engine.service import Engine

_STATES = frozenset({"provisioningState", "instanceView"})
"""Properties that change although nobody has changed the resource."""
T = TypeVar("T")
Watch = Callable[[Iterable[Scope]], None]
"""A function that gets the scopes that the tag was made from, before they are changed."""


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


class _ScopeChanged(Exception):
    """Somebody has changed a scope since the tag of its resource was compared."""


async def checked_change(
    arm: Arm, call: ArmCall, change: Callable[[Arm, Watch], Awaitable[T]]
) -> T:
    """Runs `change`, which reads a resource, compares its tag, tells Watch and makes the change.

    It is run again if somebody changed the resource in between. Raises ArmError if a part of the
    change was already made then.
    """
    if not call.if_match and not call.if_none_match:
        return await change(arm, lambda _: None)
    while True:
        engine = _WatchingEngine(arm.control.engine)
        control = dataclasses.replace(arm.control, engine=cast(Engine, engine))
        try:
            return await change(dataclasses.replace(arm, control=control), engine.watch)
        except _ScopeChanged:
            if engine.has_changed:
                raise ArmError(
                    409,
                    "AnotherOperationInProgress",
                    "Somebody else changed the resource meanwhile. A part of this change was made "
                    "before that and stays; look at the resource and try again.",
                ) from None


class _WatchingEngine:
    """An engine that refuses the first change of a scope that is not as it was seen."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seen: dict[ScopeId, Scope] = {}
        self.has_changed = False

    def watch(self, scopes: Iterable[Scope]) -> None:
        self._seen = {each.id: each for each in scopes}

    async def submit(
        self,
        scope_id: ScopeId,
        command: Command,
        *,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> Receipt:
        seen = self._seen.get(scope_id)

        def precondition(scope: Scope) -> None:
            if seen is not None and _content(scope) != _content(seen):
                raise _ScopeChanged(scope_id)

        receipt = await self._engine.submit(
            scope_id, command, by=by, why=why, fences=fences, precondition=precondition
        )
        self._seen.pop(scope_id, None)
        self.has_changed = True
        return receipt

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        await self._engine.create(scopes, by=by, why=why, fences=fences)
        self.has_changed = True

    async def approve(
        self, event_id: EventId, *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> Receipt:
        return await self._engine.approve(event_id, by=by, why=why, fences=fences)

    def new_id(self) -> EventId:
        return self._engine.new_id()


def _content(scope: Scope) -> object:
    """Returns what tags depend on: the roster, and which instances are being deleted."""
    return scope.roster, leavers(scope)
