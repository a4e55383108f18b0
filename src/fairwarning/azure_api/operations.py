"""Stores long-running ARM operations. An operation lasts until all its events are over.

An operation stores the ids of its events and no state of its own. Its state is computed from the
states of the events, so the two always agree, even after a restart.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fairwarning.azure_api.errors import ArmError, Failure
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import ArmCall, Json, Reply
from fairwarning.core.instants import DAY_MS, Instant, format_rfc3339
from fairwarning.core.model import ENGINE, Event, EventId, Phase
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Clock, Store

KIND = "arm-operation"
KEPT_MS = DAY_MS
"""How long an operation is kept after its start. The time is wall clock time."""
RETRY_AFTER_S = 1
"""The value of the Retry-After header. Without it, clients wait 30 seconds between polls."""


class Operation(Struct, frozen=True, kw_only=True):
    id: str
    verb: str
    """What the operation does, such as `delete` or `restart`. For a PUT: `create` or `update`."""
    target: str
    """The id of the resource."""
    started_ms: Instant
    events: tuple[EventId, ...] = ()
    """The ids of the operation's events. The operation ends when all of them are over."""
    failure: Failure | None = None
    """The reason why the operation could not start. It is None if it started."""


class OperationState(Struct, frozen=True, kw_only=True):
    status: str
    """`InProgress`, `Succeeded` or `Failed`."""
    ended_ms: Instant | None = None
    failure: Failure | None = None

    @property
    def is_over(self) -> bool:
        return self.status != "InProgress"


class Operations:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(
        self,
        call: ArmCall,
        *,
        verb: str,
        target: str,
        events: Sequence[EventId] = (),
        failure: Failure | None = None,
    ) -> Operation:
        operation = Operation(
            id=new_operation_id(),
            verb=verb,
            target=target,
            started_ms=self._clock.now(),
            events=tuple(events),
            failure=failure,
        )
        body = msgspec.json.encode(operation).decode()
        await self._store.keep(KIND, operation.id, body, expected=0, by=call.by)
        return operation

    async def find(self, id: str) -> Operation | None:
        record = await self._store.record(KIND, id.lower())
        return None if record is None else msgspec.json.decode(record.body, type=Operation)

    async def page(self, *, after: str, until: str, limit: int) -> list[Operation]:
        """Returns up to `limit` operations with ids between `after` and `until`, oldest first."""
        found = await self._store.records(KIND, after=after, until=until, limit=limit)
        return [msgspec.json.decode(each.body, type=Operation) for each in found]

    async def forget(self, operation: Operation) -> None:
        await self._store.drop(KIND, operation.id, by=ENGINE)

    async def state(self, operation: Operation) -> OperationState:
        events = [(await self._store.find_event(id))[1] for id in operation.events]
        return state_of(operation, events)

    async def state_of_id(self, id: str) -> OperationState:
        """Returns the state of an operation.

        If the id is unknown or empty, the state is Succeeded.
        """
        operation = await self.find(id) if id else None
        return (
            OperationState(status="Succeeded") if operation is None else await self.state(operation)
        )


def state_of(operation: Operation, events: Sequence[Event]) -> OperationState:
    """Returns the state of an operation. `events` are its events as they are now."""
    if operation.failure is not None:
        return OperationState(
            status="Failed", ended_ms=operation.started_ms, failure=operation.failure
        )
    if any(not each.is_finished for each in events):
        return OperationState(status="InProgress")
    ended = max((e.ended_ms for e in events if e.ended_ms is not None), default=None)
    ended = operation.started_ms if ended is None else ended
    broken = [each for each in events if each.phase is not Phase.COMPLETED and not _is_gone(each)]
    if not broken:
        return OperationState(status="Succeeded", ended_ms=ended)
    details = tuple(
        Failure(
            code="OperationFailed" if each.phase is Phase.FAILED else "OperationCanceled",
            message=f"{each.type} of {', '.join(each.resources)} was {each.phase}: {each.outcome}",
            target=each.id,
        )
        for each in broken
    )
    return OperationState(
        status="Failed",
        ended_ms=ended,
        failure=Failure(code=details[0].code, message=details[0].message, details=details),
    )


def _is_gone(event: Event) -> bool:
    """Returns whether the event was cancelled because its instance is gone. This is no failure."""
    if event.phase is not Phase.CANCELLED:
        return False
    # If the event has several instances, one may be removed while the others still wait.
    is_removed = len(event.resources) == 1 and event.outcome.endswith("was removed")
    return is_removed or event.outcome.endswith("was deleted")


def new_operation_id() -> str:
    """Returns a new GUID. Such GUIDs sort by time, so old operations are deleted as one range."""
    return _as_guid(SystemClock().now(), os.urandom(10).hex()[:19])


def first_id_at(instant: Instant) -> str:
    """Returns the smallest id of an operation that starts at this instant."""
    return _as_guid(instant, "0" * 19)


def _as_guid(instant: Instant, rest: str) -> str:
    text = f"{instant:012x}7{rest}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def status_json(operation: Operation, state: OperationState) -> Json:
    body: Json = {
        "startTime": format_rfc3339(operation.started_ms),
        "status": state.status,
        "name": operation.id,
    }
    if state.ended_ms is not None:
        body["endTime"] = format_rfc3339(state.ended_ms)
    if state.failure is not None:
        body["error"] = state.failure.json()
    return body


def _headers(call: ArmCall, operation: Operation, location: str) -> dict[str, str]:
    """Returns the headers that tell a client where it can poll the operation."""
    url = (
        f"{call.base_url}/subscriptions/{call.path.subscription}/providers/Microsoft.Compute"
        f"/locations/{location}/operations/{operation.id}?api-version={call.api_version}"
    )
    headers = {"Azure-AsyncOperation": url, "Retry-After": str(RETRY_AFTER_S)}
    if call.method in ("PUT", "PATCH"):
        # With a Location, az would take its answer for the resource. Without it, az reads the
        # resource itself.
        return headers
    return {**headers, "Location": f"{url}&monitor=true"}


def accepted(call: ArmCall, operation: Operation, location: str) -> Reply:
    return operation_reply(call, operation, location, 202)


def operation_reply(
    call: ArmCall, operation: Operation, location: str, status: int, body: Json | None = None
) -> Reply:
    """Returns the reply to a request that began an operation. `location` is the region."""
    return Reply(status, body, _headers(call, operation, location), operation)


class Deletion(NamedTuple):
    """A deletion of a resource that has begun. `location` is the resource's region."""

    operation: Operation
    location: str


def unknown_operation(path: ResourcePath) -> ArmError:
    return ArmError(
        404,
        "OperationNotFound",
        f"There is no operation {path.name!r}; operations are forgotten a day after they began.",
    )
