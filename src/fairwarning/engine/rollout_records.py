"""This module keeps rollouts as records of the store, and changes them by compare-and-set.

A small rollout is one record with all its steps. A large one is a record without steps, and a
record for each of its parts (`core/rollouts/parts.py`). The two have different kinds, because an
older version would take a record without steps for a rollout that is done. A part is only written
together with its rollout, in one commit. So as long as the revision of the rollout is the same, its
parts are the same too.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core.instants import DAY_MS, Instant
from fairwarning.core.model import Actor, EventId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts import parts
from fairwarning.core.rollouts.concurrency import Steps
from fairwarning.core.rollouts.model import (
    Rollout,
    RolloutId,
    RolloutStep,
    is_rollout_id,
    rollout_id,
)
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import (
    Fence,
    FenceBroken,
    Record,
    RecordChanged,
    Store,
    StoreDown,
)

KIND = "rollout"
LARGE_KIND = "rollout-in-parts"
PART_KIND = "rollout-part"
PAGE_RECORDS_MAX = 50  # Few, because a rollout of many scopes is a large record.
PAGE_PARTS_MAX = 10  # At most a thousand steps, which are quick to decode.
PARTS_AT_ONCE = 16
"""How many parts of a new rollout are written together. Other writers get a turn in between."""
_NINES = str.maketrans("0123456789", "9876543210")

_decoder = msgspec.json.Decoder(Rollout)
_steps_decoder = msgspec.json.Decoder(tuple[RolloutStep, ...])


class Kept(Struct, frozen=True, kw_only=True):
    rollout: Rollout
    revision: int
    parts: Mapping[int, Record] = {}
    """The records of the open parts, in order, if their steps are loaded."""
    sizes: Mapping[int, int] = {}
    """How many steps each of these parts has."""


class RolloutRecords:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._until: str | None = None
        """The key of the oldest rollout that may be unfinished, or None if it is not known."""
        self._read: dict[str, Kept] = {}
        """The unfinished rollouts as they were last read, because large ones are slow to decode."""
        self._era = 0
        """How often the store has stepped back. What was read before the last time is not kept."""

    def forget(self) -> None:
        """Forget what was read, because the store has stepped back and may have other bodies."""
        self._until = None
        self._read.clear()
        self._era += 1

    async def find(self, id: str) -> Kept:
        found = await self.read(id)
        if found is None:
            raise Refused(
                Code.UNKNOWN_ROLLOUT,
                f"there is no rollout {id!r}; `fairwarning rollout list` shows those that are",
            )
        return found

    async def read(self, id: str) -> Kept | None:
        """Return the rollout with its steps, or with those of its open parts if it is large."""
        if not is_rollout_id(id):
            return None
        while True:
            era, key = self._era, _key(id)
            record = await self._store.record(KIND, key)
            if record is None:
                record = await self._store.record(LARGE_KIND, key)
            if record is None:
                return None
            loaded = await self._loaded(self._kept(record, era), era)
            if loaded is not None:
                return loaded

    async def page(self, after: str, limit: int) -> list[Rollout]:
        """Return a page of rollouts, newest first. Large ones have no steps."""
        era, begin = self._era, _key(after) if is_rollout_id(after) else ""
        records = await self._records(begin, None, limit)
        return [self._kept(record, era).rollout for record in records]

    async def unfinished(self, now: Instant) -> list[Kept]:
        """Return the unfinished rollouts, back to the oldest one of the last call.

        It reads at least one day back, because the clocks of nodes differ and a new rollout may not
        have the newest id.
        """
        era = self._era
        found = [k async for k in self._back_to(self._until) if k.rollout.ended_ms is None]
        if era == self._era:
            self._until = max([_yesterday(now), *(_key(kept.rollout.id) for kept in found)])
        return found

    async def find_seeded(self, seed: str, now: Instant) -> RolloutId:
        """Return the rollout of the last day with this seed. Raises Refused if there is none."""
        async for kept in self._back_to(_yesterday(now)):
            if kept.rollout.seed == seed:
                return kept.rollout.id
        raise Refused(
            Code.UNKNOWN_ROLLOUT, "the rollout of this request is no longer there; list them"
        )

    async def steps(
        self, rollout: Rollout, part: int, limit: int
    ) -> AsyncIterator[tuple[int, Steps]]:
        """Yield the parts of a large rollout from `part` on, until they have `limit` steps."""
        assert rollout.rest is not None
        key, found = _key(rollout.id), 0
        while found < limit and part < rollout.rest.parts:
            records = await self._store.records(
                PART_KIND,
                after=_part_key(key, part - 1),
                until=_part_key(key, rollout.rest.parts),
                limit=PAGE_PARTS_MAX,
            )
            if not records:
                return
            for record in records:
                steps = _decode_steps(record)
                found += len(steps)
                yield part, steps
                part += 1
                await asyncio.sleep(0)

    async def _back_to(self, until: str | None) -> AsyncIterator[Kept]:
        after, era = "", self._era
        while page := await self._records(after, until, PAGE_RECORDS_MAX):
            for record in page:
                yield self._kept(record, era)
            after = page[-1].key

    async def _records(self, after: str, until: str | None, limit: int) -> list[Record]:
        """Return the records of rollouts of both kinds, in the order of their keys."""
        found = [
            record
            for kind in (KIND, LARGE_KIND)
            for record in await self._store.records(kind, after=after, until=until, limit=limit)
        ]
        return sorted(found, key=lambda record: record.key)[:limit]

    async def add_parts(self, id: RolloutId, bodies: Sequence[str], *, by: Actor) -> None:
        """Write the parts of a new rollout, before the rollout. Raises RecordChanged if the id is
        in use.
        """
        key = _key(id)
        for first in range(0, len(bodies), PARTS_AT_ONCE):
            await asyncio.gather(
                *(
                    self._store.keep(PART_KIND, _part_key(key, first + n), body, expected=0, by=by)
                    for n, body in enumerate(bodies[first : first + PARTS_AT_ONCE])
                )
            )

    async def with_open_parts(self, kept: Kept, now: Instant) -> Kept:
        """Close the parts of a large rollout that are over, open more while there are places, and
        return the rollout. Nothing is stored.
        """
        if kept.rollout.rest is None:
            return kept
        own = parts.in_parts(kept.rollout, list(kept.sizes.values()))
        numbered = list(zip(kept.sizes, own, strict=True))
        rollout = parts.without_finished(kept.rollout, numbered, now)
        assert rollout.rest is not None
        records = {n: kept.parts[n] for n in rollout.rest.opened}
        sizes = {n: kept.sizes[n] for n in rollout.rest.opened}
        while parts.wants_part(rollout, now):
            assert rollout.rest is not None
            number = rollout.rest.next
            records[number] = await self._part(rollout.id, number)
            steps = _decode_steps(records[number])
            sizes[number] = len(steps)
            rollout = parts.with_part(rollout, steps)
        return Kept(rollout=rollout, revision=kept.revision, parts=records, sizes=sizes)

    async def keep(
        self,
        rollout: Rollout,
        *,
        expected: int,
        by: Actor,
        why: str = "",
        action: str | None = None,
        read: Kept | None = None,
    ) -> Kept:
        """Write the rollout, with a journal entry if there is an `action`. Raises RecordChanged.

        `read` has the open parts of a large rollout. Those that `rollout` changes are written too.
        """
        note = None
        if action is not None:
            detail = rollout.outcome or rollout.spec.name
            note = Noted(subject=f"{KIND}:{rollout.id}", action=action, detail=detail)
        rollout = parts.with_counts(rollout)
        fences = _part_fences(rollout, read)
        stored = rollout if rollout.rest is None else replace(rollout, steps=())
        body = msgspec.json.encode(stored).decode()
        key, kind = _key(rollout.id), KIND if rollout.rest is None else LARGE_KIND
        try:
            record = await self._store.keep(
                kind, key, body, expected=expected, note=note, by=by, why=why,
                fences=list(fences.values()),
            )  # fmt: skip
        except FenceBroken as broken:
            if broken.fence.record.kind != PART_KIND:
                raise
            raise RecordChanged(str(broken)) from None
        if read is None:
            return Kept(rollout=rollout, revision=record.revision)
        written = {n: _written(fence) for n, fence in fences.items()}
        kept = Kept(
            rollout=rollout,
            revision=record.revision,
            parts={**read.parts, **written},
            sizes=read.sizes,
        )
        if rollout.rest is not None and rollout.ended_ms is None:
            self._read[key] = kept
        return kept

    async def _loaded(self, kept: Kept, era: int) -> Kept | None:
        """Return the rollout with the steps of its open parts. It is None if somebody changed the
        rollout while its parts were read, because they may not belong together.
        """
        rest = kept.rollout.rest
        if rest is None or kept.sizes.keys() == set(rest.opened):
            return kept
        records = {number: await self._part(kept.rollout.id, number) for number in rest.opened}
        found = {number: _decode_steps(record) for number, record in records.items()}
        loaded = Kept(
            rollout=replace(
                kept.rollout, steps=tuple(step for steps in found.values() for step in steps)
            ),
            revision=kept.revision,
            parts=records,
            sizes={number: len(steps) for number, steps in found.items()},
        )
        again = await self._store.record(LARGE_KIND, _key(kept.rollout.id))
        if again is None or again.revision != kept.revision:
            return None
        if era == self._era and kept.rollout.ended_ms is None:
            self._read[_key(kept.rollout.id)] = loaded
        return loaded

    async def _part(self, id: RolloutId, number: int) -> Record:
        record = await self._store.record(PART_KIND, _part_key(_key(id), number))
        if record is None:
            raise _unreadable()
        return record

    def _kept(self, record: Record, era: int) -> Kept:
        """Return the decoded record. `era` is the era in which the record was asked for."""
        if era != self._era:
            return _decode(record)
        found = self._read.get(record.key)
        if found is None or found.revision != record.revision:
            found = self._read[record.key] = _decode(record)
        if found.rollout.ended_ms is not None:
            del self._read[record.key]
        return found


def _part_fences(rollout: Rollout, read: Kept | None) -> dict[int, Fence]:
    """Return a fence that writes each open part whose steps have changed."""
    if rollout.rest is None or read is None:
        return {}
    fences: dict[int, Fence] = {}
    own = parts.in_parts(rollout, list(read.sizes.values()))
    for number, steps in zip(read.sizes, own, strict=True):
        body = encode_steps(steps)
        if body != read.parts[number].body:
            fences[number] = Fence(record=read.parts[number], then=body)
    return fences


def _written(fence: Fence) -> Record:
    old = fence.record
    assert fence.then is not None
    return replace(old, revision=old.revision + 1, body=fence.then)


def encode_steps(steps: Steps) -> str:
    return msgspec.json.encode(steps).decode()


def _key(id: str | RolloutId) -> str:
    """Return the key of a rollout: 9 minus each digit of its id, so that the newest is first."""
    return id.translate(_NINES)


def _part_key(key: str, number: int) -> str:
    return f"{key}/{number + 1:07}"


def _yesterday(now: Instant) -> str:
    return _key(rollout_id(Instant(now - DAY_MS), EventId("000000")))


def _decode(record: Record) -> Kept:
    try:
        return Kept(rollout=_decoder.decode(record.body), revision=record.revision)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _unreadable() from error


def _decode_steps(record: Record) -> Steps:
    try:
        return _steps_decoder.decode(record.body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _unreadable() from error


def _unreadable() -> StoreDown:
    return StoreDown(
        "a stored rollout cannot be read: it is damaged, or a newer version wrote it; restore "
        "a backup, or upgrade"
    )
