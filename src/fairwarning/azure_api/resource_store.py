"""What callers said of their resources, kept word for word beside the fleet.

The fleet knows instances, their power, models and rules; that is never taken from here. All
else that a resource says of itself (images, disks, users, networks) is nobody's business but
its owner's, and comes back as it was written.
"""

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


class Kept(Struct, frozen=True, kw_only=True):
    id: str
    """In the spelling of whoever made it."""
    type: str
    """`Microsoft.Network/networkInterfaces`."""
    name: str
    body: Json
    """What the caller said: location, tags, sku, properties … without what can be derived."""
    created_ms: Instant
    unique_id: str
    is_going: bool = False
    """Deletion was asked for: the resource is gone as soon as its last instance is."""
    operation: str = ""
    """The last one on this resource; its state is the resource's provisioningState."""
    revision: int = 0
    """Of the record, for `put` and `drop`."""
    stored: str = ""
    """The record's body as it was read: a namesake that came later may have the same revision."""


class Shelf:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, id: str) -> Kept | None:
        record = await self._store.record(KIND, _key(id))
        return None if record is None else _kept(record)

    async def put(self, kept: Kept, *, by: Actor) -> Kept:
        """Raises RecordChanged if somebody else changed it since it was read."""
        body = msgspec.json.encode(msgspec.structs.replace(kept, revision=0, stored="")).decode()
        key, revision = _key(kept.id), kept.revision
        with _as_read(kept) as fences:
            record = await self._store.keep(
                KIND, key, body, expected=revision, by=by, fences=fences
            )
        return msgspec.structs.replace(kept, revision=record.revision, stored=body)

    async def drop(self, kept: Kept, *, by: Actor) -> None:
        """Raises RecordChanged if it is no longer as it was read."""
        with _as_read(kept) as fences:
            await self._store.drop(KIND, _key(kept.id), by=by, fences=fences)

    async def drop_any(self, id: str, *, by: Actor) -> None:
        """Whatever is there."""
        await self._store.drop(KIND, _key(id), by=by)

    async def below(self, id: str) -> AsyncIterator[Kept]:
        """All whose id goes on from this one, in order of id."""
        start = f"{_key(id)}/"
        after = start
        while page := await self._store.records(
            KIND, after=after, until=start + "\U0010ffff", limit=PAGE
        ):
            for record in page:
                yield _kept(record)
            after = page[-1].key


@contextmanager
def _as_read(kept: Kept) -> Iterator[list[Fence]]:
    """Fences that hold while the record is as it was read. Raises RecordChanged if it is not."""
    if not kept.revision:
        yield []  # A new one: that there is none is checked by its revision.
        return
    record = Record(kind=KIND, key=_key(kept.id), revision=kept.revision, body=kept.stored)
    try:
        yield [Fence(record=record)]
    except FenceBroken as broken:
        if broken.fence.record != record:
            raise
        raise RecordChanged(str(broken)) from None


def _key(id: str) -> str:
    return "/" + id.strip("/").lower()


def _kept(record: Record) -> Kept:
    kept = msgspec.json.decode(record.body, type=Kept)
    return msgspec.structs.replace(kept, revision=record.revision, stored=record.body)
