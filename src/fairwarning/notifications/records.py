"""Stores targets, cursors, waiting deliveries and dead letters as records.

A cursor says up to which journal position a target was notified, and which node sends to it.
It is changed by compare-and-set, so two nodes can't both move it.
"""

import hashlib
from typing import TypeVar

import msgspec
from msgspec import Struct

from fairwarning.core.instants import Instant
from fairwarning.core.model import ENGINE, Actor
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import Entry, Position, Record, Store, StoreDown
from fairwarning.notifications.model import Delivery, Target

TARGET = "notification-target"
CURSOR = "notification-cursor"
WAITING = "notification-delivery"
DEAD = "notification-dead"
TARGETS_MAX = 100  # Each target has a worker that reads the whole journal.
WAITING_MAX = 500
"""How many deliveries may wait for one target. At this limit its cursor stops."""
_LAST = "~"

S = TypeVar("S", bound=Struct)


class Cursor(Struct, frozen=True, kw_only=True):
    position: Position
    node: str = ""
    """The node that sends to this target; empty if none does."""
    lease_until_ms: Instant = Instant(0)


class HeldCursor(Struct, frozen=True, kw_only=True):
    cursor: Cursor
    revision: int


def delivery_id(entry: Entry, target_id: str) -> str:
    """Return an id that is the same on every node, sorts by time, and is valid in a URL path."""
    digest = hashlib.sha256(f"{entry.position}/{target_id}".encode()).hexdigest()
    return f"{entry.at_ms:012x}-{digest[:20]}"


class NotificationRecords:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def targets(self) -> list[Target]:
        records = await self._store.records(TARGET, limit=TARGETS_MAX)
        return [_decoded(Target, each) for each in records]

    async def target(self, id: str) -> Target | None:
        record = await self._store.record(TARGET, id)
        return None if record is None else _decoded(Target, record)

    async def add_target(self, target: Target, *, by: Actor, why: str) -> None:
        """Add a target, which gets the entries that are written from now on."""
        # The cursor comes first, so that a reader who finds the target also finds its cursor.
        await self._keep(CURSOR, target.id, Cursor(position=await self._store.end()), expected=0)
        note = Noted(subject=f"notification:{target.name}", action="created", detail=target.kind)
        body = _encoded(target)
        await self._store.keep(TARGET, target.id, body, expected=0, note=note, by=by, why=why)

    async def remove_target(self, target: Target, *, by: Actor, why: str) -> None:
        note = Noted(subject=f"notification:{target.name}", action="removed")
        await self._store.drop(TARGET, target.id, note=note, by=by, why=why)

    async def clear(self, target_id: str) -> None:
        """Delete all records of a removed target, its cursor last."""
        for delivery in await self.waiting(target_id):
            await self.take_waiting(delivery)
        after = ""
        while page := await self.dead(after, WAITING_MAX):
            after = page[-1].id
            for delivery in page:
                if delivery.target_id == target_id:
                    await self.take_dead(delivery)
        await self._store.drop(CURSOR, target_id, by=ENGINE)

    async def cursor(self, target_id: str) -> HeldCursor | None:
        record = await self._store.record(CURSOR, target_id)
        if record is None:
            return None
        return HeldCursor(cursor=_decoded(Cursor, record), revision=record.revision)

    async def move(self, target_id: str, held: HeldCursor, cursor: Cursor) -> HeldCursor:
        """Store the cursor. Raises RecordChanged if another node has moved it since."""
        record = await self._keep(CURSOR, target_id, cursor, expected=held.revision)
        return HeldCursor(cursor=cursor, revision=record.revision)

    async def waiting(self, target_id: str) -> list[Delivery]:
        """Return the waiting deliveries, the oldest first."""
        first, last = _waiting_key(target_id, ""), _waiting_key(target_id, _LAST)
        found = await self._store.records(WAITING, after=first, until=last, limit=WAITING_MAX)
        return [_decoded(Delivery, each) for each in found]

    async def is_waiting(self, delivery: Delivery) -> bool:
        key = _waiting_key(delivery.target_id, delivery.id)
        return await self._store.record(WAITING, key) is not None

    async def put_waiting(self, delivery: Delivery) -> None:
        await self._keep(WAITING, _waiting_key(delivery.target_id, delivery.id), delivery)

    async def take_waiting(self, delivery: Delivery) -> None:
        key = _waiting_key(delivery.target_id, delivery.id)
        await self._store.drop(WAITING, key, by=ENGINE)

    async def dead(self, after: str, limit: int) -> list[Delivery]:
        records = await self._store.records(DEAD, after=after, limit=limit)
        return [_decoded(Delivery, each) for each in records]

    async def find_dead(self, id: str) -> Delivery | None:
        record = await self._store.record(DEAD, id)
        return None if record is None else _decoded(Delivery, record)

    async def put_dead(self, delivery: Delivery) -> None:
        await self._keep(DEAD, delivery.id, delivery)

    async def take_dead(self, delivery: Delivery) -> bool:
        return await self._store.drop(DEAD, delivery.id, by=ENGINE)

    async def _keep(
        self, kind: str, key: str, value: Struct, *, expected: int | None = None
    ) -> Record:
        return await self._store.keep(kind, key, _encoded(value), expected=expected, by=ENGINE)


def _waiting_key(target_id: str, id: str) -> str:
    return f"{target_id}.{id}"


def _encoded(value: Struct) -> str:
    return msgspec.json.encode(value).decode()


def _decoded(type: type[S], record: Record) -> S:
    try:
        return msgspec.json.decode(record.body, type=type)
    except msgspec.DecodeError:
        # The cause is left out: its text may quote the body, which holds secrets.
        raise StoreDown(
            f"the stored {record.kind} {record.key} cannot be read: it is damaged, or a newer "
            "version wrote it; restore a backup, or upgrade"
        ) from None
