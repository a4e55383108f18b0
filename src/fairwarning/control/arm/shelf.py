"""What callers said of their resources, kept word for word beside the fleet.

The fleet knows instances, their power, models and rules; that is never taken from here. All
else that a resource says of itself (images, disks, users, networks) is nobody's business but
its owner's, and comes back as it was written.
"""

from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from fairwarning.control.arm.call import Json
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor
from fairwarning.engine.ports import Record, Store

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
    """Of the record, for `put`."""


class Shelf:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, id: str) -> Kept | None:
        record = await self._store.record(KIND, _key(id))
        return None if record is None else _kept(record)

    async def put(self, kept: Kept, *, by: Actor) -> Kept:
        """Raises RecordChanged if somebody else changed it since it was read."""
        body = msgspec.json.encode(msgspec.structs.replace(kept, revision=0)).decode()
        record = await self._store.keep(KIND, _key(kept.id), body, expected=kept.revision, by=by)
        return msgspec.structs.replace(kept, revision=record.revision)

    async def drop(self, id: str, *, by: Actor, expected: int | None = None) -> bool:
        """Raises RecordChanged if `expected` is no longer its revision."""
        return await self._store.drop(KIND, _key(id), expected=expected, by=by)

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


def _key(id: str) -> str:
    return "/" + id.strip("/").lower()


def _kept(record: Record) -> Kept:
    kept = msgspec.json.decode(record.body, type=Kept)
    return msgspec.structs.replace(kept, revision=record.revision)
