"""The reference store: plain dictionaries, gone with the process."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from fairwarning.core.announcing import refuse_used_id
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, Event, EventId, InstanceName, Scope, ScopeId
from fairwarning.engine.ports import (
    START,
    Clock,
    Due,
    Entry,
    Listener,
    Moment,
    Position,
    Receipt,
    Signal,
    Step,
)
from fairwarning.stores.writes import (
    Writes,
    refuse_address_in_use,
    refuse_scope_exists,
    unknown_event,
    unknown_scope,
    writes_of,
    writes_of_new,
)


class MemoryStore:
    """Nothing awaits inside a method, so each is one transaction."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scopes: dict[ScopeId, Scope] = {}
        self._deadlines: dict[ScopeId, Instant] = {}
        self._pending: dict[ScopeId, int] = {}
        self._events: dict[EventId, tuple[ScopeId, Event]] = {}
        self._addresses: dict[str, tuple[ScopeId, InstanceName]] = {}
        self._entries: list[Entry] = []
        self._listeners: list[Listener] = []

    @property
    def is_shared(self) -> bool:
        return False

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def create(self, scopes: Sequence[Scope], *, by: Actor, why: str = "") -> None:
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
        for writes in planned:
            self._write(writes, now, by, why)

    async def transact(
        self,
        scope_id: ScopeId,
        step: Step,
        *,
        by: Actor,
        why: str = "",
        counting: bool = False,
        skip_busy: bool = False,
    ) -> Receipt:
        now = self._clock.now()
        before = self._get(scope_id)
        pending = self._count(before.roster.subscription) if counting else 0
        change = step(before, Moment(now_ms=now, pending_operations=pending))
        if not change.transitions:
            self._set_deadline(scope_id, change.next_deadline_ms)
            return Receipt(scope=before, at_ms=now, transitions=())
        writes = writes_of(before, change)
        for address, _ in writes.addresses_added:
            if address in self._addresses and address not in writes.addresses_removed:
                refuse_address_in_use(address)
        for event in writes.born:
            if event.id in self._events:
                refuse_used_id(event.id)
        self._write(writes, now, by, why)
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
        self, *, after: Position = START, scope_id: ScopeId | None = None, limit: int
    ) -> list[Entry]:
        first = int(after) if after else 0
        chosen = self._entries[first:]
        if scope_id is not None:
            chosen = [each for each in chosen if each.scope_id == scope_id]
        return chosen[:limit]

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

    def _write(self, writes: Writes, now: Instant, by: Actor, why: str) -> None:
        scope = writes.scope
        self._scopes[scope.id] = scope
        self._set_deadline(scope.id, writes.next_deadline_ms)
        self._pending[scope.id] = writes.pending_operations
        for event in (*writes.born, *writes.changed):
            self._events[event.id] = (scope.id, event)
        for address in writes.addresses_removed:
            del self._addresses[address]
        for address, name in writes.addresses_added:
            self._addresses[address] = (scope.id, name)
        for transition in writes.entries:
            self._entries.append(
                Entry(
                    position=Position(str(len(self._entries) + 1)),
                    scope_id=scope.id,
                    revision=scope.revision,
                    at_ms=now,
                    by=by,
                    why=why,
                    transition=transition,
                )
            )
        deadline = writes.next_deadline_ms
        signal = Signal(scope_id=scope.id, next_deadline_ms=deadline, scope=scope)
        for listener in self._listeners:
            listener(signal)
