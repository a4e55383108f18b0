"""This module keeps rollouts as records of the store, and changes them by compare-and-set."""

from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from fairwarning.core.instants import DAY_MS, Instant
from fairwarning.core.model import Actor, EventId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.model import Rollout, RolloutId, is_rollout_id, rollout_id
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import Record, Store, StoreDown

KIND = "rollout"
PAGE_RECORDS_MAX = 50  # Few, because a rollout of many scopes is a large record.
_NINES = str.maketrans("0123456789", "9876543210")

_decoder = msgspec.json.Decoder(Rollout)


class Kept(Struct, frozen=True, kw_only=True):
    rollout: Rollout
    revision: int


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
        era = self._era
        record = await self._store.record(KIND, _key(id)) if is_rollout_id(id) else None
        return None if record is None else self._kept(record, era)

    async def page(self, after: str, limit: int) -> list[Rollout]:
        """Return a page of rollouts, newest first."""
        era, begin = self._era, _key(after) if is_rollout_id(after) else ""
        records = await self._store.records(KIND, after=begin, limit=limit)
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

    async def _back_to(self, until: str | None) -> AsyncIterator[Kept]:
        after, era = "", self._era
        while page := await self._store.records(
            KIND, after=after, until=until, limit=PAGE_RECORDS_MAX
        ):
            for record in page:
                yield self._kept(record, era)
            after = page[-1].key

    async def keep(
        self,
        rollout: Rollout,
        *,
        expected: int,
        by: Actor,
        why: str = "",
        action: str | None = None,
    ) -> Kept:
        """Write the rollout, with a journal entry if there is an `action`. Raises RecordChanged."""
        note = None
        if action is not None:
            detail = rollout.outcome or rollout.spec.name
            note = Noted(subject=f"{KIND}:{rollout.id}", action=action, detail=detail)
        body = msgspec.json.encode(rollout).decode()
        key = _key(rollout.id)
        record = await self._store.keep(
            KIND, key, body, expected=expected, note=note, by=by, why=why
        )
        return Kept(rollout=rollout, revision=record.revision)

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


def _key(id: str | RolloutId) -> str:
    """Return the key of a rollout: 9 minus each digit of its id, so that the newest is first."""
    return id.translate(_NINES)


def _yesterday(now: Instant) -> str:
    return _key(rollout_id(Instant(now - DAY_MS), EventId("000000")))


def _decode(record: Record) -> Kept:
    try:
        return Kept(rollout=_decoder.decode(record.body), revision=record.revision)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise StoreDown(
            "a stored rollout cannot be read: it is damaged, or a newer version wrote it; restore "
            "a backup, or upgrade"
        ) from error
