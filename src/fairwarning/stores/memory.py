"""The reference store keeps everything in memory, so all is lost when the process ends."""

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nlargest

from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    EventType,
    InstanceName,
    Phase,
    Scope,
    ScopeId,
)
from fairwarning.core.new_events import refuse_used_id
from fairwarning.core.transitions import Noted, Transition
from fairwarning.engine.protocols import (
    START,
    Choice,
    Clock,
    Due,
    Entry,
    Fence,
    FenceBroken,
    Listener,
    Mark,
    Moment,
    Position,
    Receipt,
    Record,
    Signal,
    Step,
    StoreCondition,
)
from fairwarning.stores import listeners
from fairwarning.stores.event_queries import fits, place_of
from fairwarning.stores.listeners import Listeners
from fairwarning.stores.writes import (
    Writes,
    event_id_of,
    refuse_address_in_use,
    refuse_scope_exists,
    unknown_event,
    unknown_scope,
    writes_of,
    writes_of_new,
)


class MemoryStore:
    """Keeps everything in memory. Each method is one transaction, because none awaits anything."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scopes: dict[ScopeId, Scope] = {}
        self._deadlines: dict[ScopeId, Instant] = {}
        self._pending: dict[ScopeId, int] = {}
        self._events: dict[EventId, tuple[ScopeId, Event]] = {}
        self._addresses: dict[str, tuple[ScopeId, InstanceName]] = {}
        self._entries: list[Entry] = []
        self._records: dict[tuple[str, str], Record] = {}
        self._listeners = Listeners()

    @property
    def is_shared(self) -> bool:
        return False

    async def open(self) -> None:
        """Does nothing; other stores connect here."""

    async def close(self) -> None:
        """Does nothing; other stores disconnect here."""

    @property
    def condition(self) -> StoreCondition:
        return StoreCondition()

    def listen(self, listener: Listener) -> None:
        self._listeners.add(listener)

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        self._refuse_broken(fences)
        now = self._clock.now()
        planned = [writes_of_new(scope) for scope in scopes]
        taken = set(self._addresses)
        names = set(self._scopes)
        for writes in planned:
            if writes.scope.id in names:
                refuse_scope_exists(writes.scope.id)
            names.add(writes.scope.id)
            for address, _ in writes.addresses_added:
                if address in taken:
                    refuse_address_in_use(address)
                taken.add(address)
        self._mark(fences)
        signals = [self._write(writes, now, by, why) for writes in planned]
        for signal in signals:
            self._listeners.tell(signal)

    async def transact(
        self,
        scope_id: ScopeId,
        step: Step,
        *,
        by: Actor,
        why: str = "",
        counting: bool = False,
        skip_busy: bool = False,
        fences: Sequence[Fence] = (),
    ) -> Receipt:
        self._refuse_broken(fences)
        now = self._clock.now()
        before = self._get(scope_id)
        pending = self._count(before.roster.subscription) if counting else 0
        change = step(before, Moment(now_ms=now, pending_operations=pending))
        if not change.transitions:
            self._mark(fences)
            self._set_deadline(scope_id, change.next_deadline_ms)
            return Receipt(scope=before, at_ms=now, transitions=())
        writes = writes_of(before, change)
        for address, _ in writes.addresses_added:
            if address in self._addresses and address not in writes.addresses_removed:
                refuse_address_in_use(address)
        for event in writes.new_events:
            if event.id in self._events:
                refuse_used_id(event.id)
        self._mark(fences)
        self._listeners.tell(self._write(writes, now, by, why))
        return Receipt(scope=writes.scope, at_ms=now, transitions=change.transitions)

    async def read(self, scope_id: ScopeId) -> Scope:
        return self._get(scope_id)

    async def scope_ids(self, *, after: ScopeId | None = None, limit: int) -> list[ScopeId]:
        return [id for id in sorted(self._scopes) if after is None or id > after][:limit]

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        return [self._scopes[id] for id in await self.scope_ids(after=after, limit=limit)]

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        if event_id not in self._events:
            raise unknown_event(event_id)
        return self._events[event_id]

    async def locate(self, address: str) -> tuple[ScopeId, InstanceName] | None:
        return self._addresses.get(address)

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        for scope_id, at_ms in seen.items():
            scope = self._scopes.get(scope_id)
            if scope is not None and (scope.last_seen_ms or 0) < at_ms:
                self._scopes[scope_id] = replace(scope, last_seen_ms=at_ms)

    async def due(self, limit: int) -> Due:
        now = self._clock.now()
        due = sorted((at, id) for id, at in self._deadlines.items() if at <= now)
        ahead = (at for at in self._deadlines.values() if at > now)
        return Due(
            now_ms=now,
            scope_ids=tuple(id for _, id in due[:limit]),
            next_deadline_ms=min(ahead, default=None),
        )

    async def end(self) -> Position:
        return Position(str(len(self._entries)))

    async def journal(
        self,
        *,
        after: Position = START,
        scope_id: ScopeId | None = None,
        limit: int,
        inclusive: bool = False,
    ) -> list[Entry]:
        first = max(int(after or 0) - inclusive, 0)
        chosen = self._entries[first:]
        if scope_id is not None:
            chosen = [each for each in chosen if each.scope_id == scope_id]
        return chosen[:limit]

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        last = len(self._entries) if before is None else max(int(before or 0) - 1, 0)
        chosen = [
            each
            for each in reversed(self._entries[:last])
            if scope_id in {None, each.scope_id}
            and event_id in {None, event_id_of(each.transition)}
        ]
        return chosen[:limit]

    async def events(
        self, choice: Choice, *, before: Mark | None = None, limit: int
    ) -> list[tuple[ScopeId, Event]]:
        end = None if before is None else (before.created_ms, before.event_id)
        chosen = (
            found
            for found in self._events.values()
            if fits(choice, *found) and (end is None or place_of(found[1]) < end)
        )
        return nlargest(limit, chosen, key=lambda found: place_of(found[1]))

    async def count_events(self) -> Mapping[tuple[EventType, Phase], int]:
        return Counter((event.type, event.phase) for _, event in self._events.values())

    async def record(self, kind: str, key: str) -> Record | None:
        return self._records.get((kind, key))

    async def records(
        self, kind: str, *, after: str = "", until: str | None = None, limit: int
    ) -> list[Record]:
        return [
            self._records[place]
            for place in sorted(self._records)
            if place[0] == kind and place[1] > after and (until is None or place[1] <= until)
        ][:limit]

    async def keep(
        self,
        kind: str,
        key: str,
        body: str,
        *,
        expected: int | None = None,
        note: Noted | None = None,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> Record:
        self._refuse_broken(fences)
        revision = self._revision(kind, key, expected)
        self._mark(fences)
        record = Record(kind=kind, key=key, revision=revision + 1, body=body)
        self._records[kind, key] = record
        self._note(note, by, why)
        return record

    async def drop(
        self,
        kind: str,
        key: str,
        *,
        expected: int | None = None,
        note: Noted | None = None,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> bool:
        self._refuse_broken(fences)
        revision = self._revision(kind, key, expected)
        self._mark(fences)
        if revision == 0:
            return False
        del self._records[kind, key]
        self._note(note, by, why)
        return True

    def _refuse_broken(self, fences: Sequence[Fence]) -> None:
        for fence in fences:
            record = fence.record
            if self._records.get((record.kind, record.key)) != record:
                raise FenceBroken(fence)

    def _mark(self, fences: Sequence[Fence]) -> None:
        """Writes the new bodies of the fences' records, once nothing can refuse the change."""
        for fence in fences:
            if fence.then is not None:
                old = fence.record
                new = replace(old, revision=old.revision + 1, body=fence.then)
                self._records[old.kind, old.key] = new

    def _revision(self, kind: str, key: str, expected: int | None) -> int:
        """Returns the record's revision, or 0. Raises RecordChanged if `expected` is another."""
        record = self._records.get((kind, key))
        revision = 0 if record is None else record.revision
        if expected not in {None, revision}:
            raise listeners.record_changed(kind, key)
        return revision

    def _note(self, note: Noted | None, by: Actor, why: str) -> None:
        if note is not None:
            self._append(
                listeners.GLOBAL_SCOPE, listeners.GLOBAL_REVISION, self._clock.now(), by, why, note
            )
            self._listeners.tell(listeners.GLOBAL_SIGNAL)

    def _get(self, scope_id: ScopeId) -> Scope:
        if scope_id not in self._scopes:
            raise unknown_scope(scope_id)
        return self._scopes[scope_id]

    def _count(self, subscription: str) -> int:
        return sum(
            pending
            for id, pending in self._pending.items()
            if self._scopes[id].roster.subscription == subscription
        )

    def _set_deadline(self, scope_id: ScopeId, deadline: Instant | None) -> None:
        if deadline is None:
            self._deadlines.pop(scope_id, None)
        else:
            self._deadlines[scope_id] = deadline

    def _write(self, writes: Writes, now: Instant, by: Actor, why: str) -> Signal:
        """Writes all rows and returns the signal of the change."""
        scope = writes.scope
        self._scopes[scope.id] = scope
        self._set_deadline(scope.id, writes.next_deadline_ms)
        self._pending[scope.id] = writes.pending_operations
        for event in (*writes.new_events, *writes.changed_events):
            self._events[event.id] = (scope.id, event)
        for address in writes.addresses_removed:
            del self._addresses[address]
        for address, name in writes.addresses_added:
            self._addresses[address] = (scope.id, name)
        for transition in writes.entries:
            self._append(scope.id, scope.revision, now, by, why, transition)
        return writes.signal

    def _append(
        self,
        scope_id: ScopeId,
        revision: int,
        now: Instant,
        by: Actor,
        why: str,
        transition: Transition,
    ) -> None:
        self._entries.append(
            Entry(
                position=Position(str(len(self._entries) + 1)),
                scope_id=scope_id,
                revision=revision,
                at_ms=now,
                by=by,
                why=why,
                transition=transition,
            )
        )
