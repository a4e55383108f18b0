"""The resource store keeps what callers wrote about their resources, without changes.

The fleet knows the instances, their power, models and rules. These facts are never read from this
store. All other members of a resource (images, disks, users, networks) matter only to its owner,
and are returned as they were written.
"""

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from fairwarning.azure_api.request import Json
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor
from fairwarning.engine.protocols import Fence, FenceBroken, Record, RecordChanged, Store

KIND = "arm"
PAGE = 500


class ResourceRecord(Struct, frozen=True, kw_only=True):
    """What is stored about one resource."""

    id: str
    """The id as the creator of the resource spelled it."""
    type: str
    """The full type, such as `Microsoft.Network/networkInterfaces`."""
    name: str
    body: Json
    """What the caller wrote (location, tags, sku, properties …), without derived members."""
    created_ms: Instant
    unique_id: str
    is_deleting: bool = msgspec.field(default=False, name="is_going")
    """True once the deletion was requested. The resource ends with its last instance."""
    operation: str = ""
    """The id of the last operation on the resource. The provisioningState shows its state."""
    revision: int = 0
    """The revision of the stored record, for `put` and `delete`."""
    stored: str = ""
    """The body of the stored record as it was read.

    It is compared together with the revision, because a new resource of the same name may have the
    same revision.
    """


def new_record(
    now: Instant, *, id: str, type: str, name: str, body: Json, operation: str = ""
) -> ResourceRecord:
    """Returns a new record with a new unique id. The record is not stored yet."""
    return ResourceRecord(
        id=id,
        type=type,
        name=name,
        body=body,
        created_ms=now,
        unique_id=str(uuid.uuid4()),
        operation=operation,
    )


class ResourceStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, id: str) -> ResourceRecord | None:
        stored = await self._store.record(KIND, _key(id))
        return None if stored is None else _decode(stored)

    async def put(self, record: ResourceRecord, *, by: Actor) -> ResourceRecord:
        """Stores the record and returns it with its new revision.

        Raises RecordChanged if another request changed the record since it was read.
        """
        body = msgspec.json.encode(msgspec.structs.replace(record, revision=0, stored="")).decode()
        key, revision = _key(record.id), record.revision
        with _unchanged(record) as fences:
            stored = await self._store.keep(
                KIND, key, body, expected=revision, by=by, fences=fences
            )
        return msgspec.structs.replace(record, revision=stored.revision, stored=body)

    async def delete(self, record: ResourceRecord, *, by: Actor) -> None:
        """Deletes the record. Raises RecordChanged if it was changed since it was read."""
        with _unchanged(record) as fences:
            await self._store.drop(KIND, _key(record.id), by=by, fences=fences)

    async def delete_by_id(self, id: str, *, by: Actor) -> None:
        """Deletes the record even if another request has changed it."""
        await self._store.drop(KIND, _key(id), by=by)

    async def delete_below(self, id: str, *, by: Actor) -> None:
        """Deletes all records below this id, such as locks of a deleted one of the same name."""
        for each in [record async for record in self.list_below(id)]:
            await self.delete_by_id(each.id, by=by)

    async def list_below(self, id: str) -> AsyncIterator[ResourceRecord]:
        """Yields all records whose id starts with this id and a slash, in order of id."""
        start = f"{_key(id)}/"
        after = start
        while page := await self._store.records(
            KIND, after=after, until=start + "\U0010ffff", limit=PAGE
        ):
            for stored in page:
                yield _decode(stored)
            after = page[-1].key


@contextmanager
def _unchanged(record: ResourceRecord) -> Iterator[list[Fence]]:
    """Yields the fences of a write that must fail if the record has changed since it was read.

    If the write fails for this reason, it raises RecordChanged.
    """
    if not record.revision:
        yield []  # For a new record, the expected revision 0 checks that no record exists yet.
        return
    stored = Record(kind=KIND, key=_key(record.id), revision=record.revision, body=record.stored)
    try:
        yield [Fence(record=stored)]
    except FenceBroken as broken:
        if broken.fence.record != stored:
            raise
        raise RecordChanged(str(broken)) from None


def _key(id: str) -> str:
    return "/" + id.strip("/").lower()


def _decode(stored: Record) -> ResourceRecord:
    record = msgspec.json.decode(stored.body, type=ResourceRecord)
    return msgspec.structs.replace(record, revision=stored.revision, stored=stored.body)
