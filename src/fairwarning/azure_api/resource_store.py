"""The resource store keeps, word for word, what callers wrote about their resources.

The fleet knows instances, their power, models and rules; those facts are never taken from here.
Everything else that a resource says about itself (images, disks, users, networks) concerns only
its owner, and comes back as it was written.
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
    """The id as its creator spelled it."""
    type: str
    """The type, like `Microsoft.Network/networkInterfaces`."""
    name: str
    body: Json
    """What the caller wrote (location, tags, sku, properties …) without what can be derived."""
    created_ms: Instant
    unique_id: str
    is_deleting: bool = msgspec.field(default=False, name="is_going")
    """True once its deletion was requested; it is gone as soon as its last instance is."""
    operation: str = ""
    """The id of the last operation on it; that one's state is the resource's provisioningState."""
    revision: int = 0
    """The revision of the stored record, for `put` and `delete`."""
    stored: str = ""
    """The stored record's body as it was read. The revision alone is not enough: a new resource of
    the same name may have reached the same number."""


def new_record(
    now: Instant, *, id: str, type: str, name: str, body: Json, operation: str = ""
) -> ResourceRecord:
    """Returns the record of a resource that has none yet."""
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
        """Raises RecordChanged if somebody else changed it since it was read."""
        body = msgspec.json.encode(msgspec.structs.replace(record, revision=0, stored="")).decode()
        key, revision = _key(record.id), record.revision
        with _unchanged(record) as fences:
            stored = await self._store.keep(
                KIND, key, body, expected=revision, by=by, fences=fences
            )
        return msgspec.structs.replace(record, revision=stored.revision, stored=body)

    async def delete(self, record: ResourceRecord, *, by: Actor) -> None:
        """Raises RecordChanged if somebody else changed it since it was read."""
        with _unchanged(record) as fences:
            await self._store.drop(KIND, _key(record.id), by=by, fences=fences)

    async def delete_by_id(self, id: str, *, by: Actor) -> None:
        """Deletes the record in whatever state it is."""
        await self._store.drop(KIND, _key(id), by=by)

    async def list_below(self, id: str) -> AsyncIterator[ResourceRecord]:
        """Yields all records whose id continues this one, in order of id."""
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
    """Yields fences that hold while the record is as it was read. Raises RecordChanged if not."""
    if not record.revision:
        yield []  # A new record: its revision alone checks that there is none yet.
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
