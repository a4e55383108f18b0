"""This module has the protocols of the store, the clock and the drivers that the engine uses."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, NewType, Protocol, TypeVar

from msgspec import Struct

from fairwarning.core.commands import Command
from fairwarning.core.decide import Change
from fairwarning.core.hooks import Hook, HookStage
from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    EventType,
    Instance,
    InstanceName,
    NodeId,
    OperationKind,
    Phase,
    Scope,
    ScopeId,
    Source,
)
from fairwarning.core.transitions import Noted, Transition

Position = NewType("Position", str)
"""A position in the journal. Only the store that made it can interpret it."""

START = Position("")
T = TypeVar("T")

call_limit_s: ContextVar[float | None] = ContextVar("call_limit_s", default=None)
"""How many seconds the current caller waits for one answer of a shared store. None: no limit."""


class StoreDown(Exception):
    """The store cannot be reached, or cannot write. Nothing that was stored is lost. A command that
    raised this may or may not have been carried out. It is safe to repeat it.
    """


class StoreUnusable(StoreDown):
    """The store cannot be used until somebody changes something: a password, a right, the URL.
    Waiting does not help.
    """


class SchemaTooNew(StoreUnusable):
    """A newer version of fairwarning has changed the store, and this one may no longer write to it.

    Reads may still work. Another node, of the newer version, can do what was refused.
    """


async def within(limit_s: float | None, work: Awaitable[T]) -> T:
    """Wait for the store, but not longer than the limit. Raises StoreDown if it takes longer. What
    was begun may still be carried out then.
    """
    if limit_s is None:
        return await work
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError:
        raise StoreDown(f"the store has not answered within {limit_s:g} s") from None


class ScopeBusy(Exception):
    """Another node is changing this scope, and the caller has asked not to wait (`skip_busy`)."""


class StoreCondition(Struct, frozen=True, kw_only=True):
    """What an operator should know about a store that works."""

    hears_signals: bool = True
    """Whether the store announces the commits of other nodes. Otherwise this node polls."""
    feed_delay_s: float = 0
    """How long the oldest entry of the journal has been held back. It is 0 if none is."""
    warnings: tuple[str, ...] = ()
    """What is not as it should be, one sentence each. Anybody may read them."""


class Moment(Struct, frozen=True, kw_only=True):
    """What a step is told besides its scope: the time, and how many operations are pending."""

    now_ms: Instant
    pending_operations: int = 0
    """How many operations are pending in the subscription. It is 0 without `counting`."""


Step = Callable[[Scope, Moment], Change]


class Entry(Struct, frozen=True, kw_only=True):
    """An entry of the journal: what happened, when, by whom and why."""

    position: Position
    scope_id: ScopeId
    revision: int
    at_ms: Instant
    by: Actor
    why: str
    transition: Transition


class Receipt(Struct, frozen=True, kw_only=True):
    """The scope after a stored change, when it was stored, and the transitions that were made."""

    scope: Scope
    at_ms: Instant
    transitions: tuple[Transition, ...]


class Due(Struct, frozen=True, kw_only=True):
    now_ms: Instant
    scope_ids: tuple[ScopeId, ...]
    next_deadline_ms: Instant | None
    """The earliest deadline in the future, or None."""


class Signal(Struct, frozen=True, kw_only=True):
    """The news that a scope has changed. If it is lost, the change is only seen later."""

    scope_id: ScopeId
    next_deadline_ms: Instant | None
    scope: Scope | None = None
    """The scope after the change if this node made it. None means that it must be read."""


class Record(Struct, frozen=True, kw_only=True):
    """A small document of the control plane, such as a token, a rollout or a target."""

    kind: str
    key: str
    revision: int
    """The revision. It is 1 for a new record, and rises by one with each change."""
    body: str
    """The content as JSON. The store does not interpret it."""


class RecordChanged(Exception):
    """Another caller has changed the record first. Read it again."""


class Fence(Struct, frozen=True, kw_only=True):
    """A record that must be unchanged when a change is stored. Otherwise nothing is stored.

    The check and the change are one commit. So a caller that changes the record later sees
    everything that was stored with the fence, and a change that comes too late is not stored.
    """

    record: Record
    """The record as it must be. The body counts too, because a new record begins at revision 1."""
    then: str | None = None
    """The new body of the record, which the same commit writes. None leaves the record as it is."""


class FenceBroken(Exception):
    """Somebody else has changed the record of a fence. Nothing was stored."""

    def __init__(self, fence: Fence) -> None:
        record = fence.record
        super().__init__(f"{record.kind} {record.key!r} is no longer at revision {record.revision}")
        self.fence = fence


class Choice(Struct, frozen=True, kw_only=True):
    """A filter for events of the store, finished ones included. An empty field allows any value."""

    phases: tuple[Phase, ...] = ()
    types: tuple[EventType, ...] = ()
    sources: tuple[Source, ...] = ()
    scope_id: ScopeId | None = None
    instance: InstanceName | None = None


class Mark(Struct, frozen=True, kw_only=True):
    """A position in the list of events, which is sorted by creation and then by id."""

    created_ms: Instant
    event_id: EventId


Listener = Callable[[Signal], None]


class DocumentStore(Protocol):
    """The part of a store that is needed to show documents. A worker has no more of it."""

    @property
    def is_shared(self) -> bool:
        """Whether other nodes may write too. Then signals can be lost, and readers must poll."""

    def listen(self, listener: Listener) -> None:
        """Call `listener` in the event loop after each commit of this node or of another."""

    async def read(self, scope_id: ScopeId) -> Scope:
        """Return the scope. Raises Refused if the id is unknown."""

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        """Return up to `limit` scopes after `after`, in the order of their ids."""

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        """Return an event, finished or not, and its scope. Raises Refused if it is unknown."""

    async def journal(
        self,
        *,
        after: Position = START,
        scope_id: ScopeId | None = None,
        limit: int,
        inclusive: bool = False,
    ) -> list[Entry]:
        """Return entries in commit order. A reader that continues at the last one misses none. With
        `inclusive`, the entry at `after` itself is returned too, if it exists.
        """

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        """Return entries of the journal, newest first. With `event_id`, only those of one event."""


class Commands(Protocol):
    """The part of an engine that carries out what instances ask for."""

    async def submit(self, scope_id: ScopeId, command: Command, *, by: Actor) -> Receipt:
        """Carry out and store the command. Raises Refused or StoreDown."""

    async def check_past(self) -> None:
        """Check whether the store has stepped back, and follow it. Raises StoreDown."""


class Store(DocumentStore, Protocol):
    """The store keeps scopes and their journal. It makes no decisions. `tests/stores` tests what it
    must do.

    Each method raises StoreDown if the store cannot answer. A method with `fences` raises
    FenceBroken if a record of a fence has changed; it has then stored nothing.
    """

    @property
    def condition(self) -> StoreCondition: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        """Create all of the scopes or none. Raises Refused if an id or an address is in use."""

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
        """Run `step` on the latest scope, while nobody else can change it, and store the result.

        The scope and its journal entries are stored together or not at all. An exception of `step`
        is passed on, and nothing is stored. `Moment.now_ms` is from the clock of the store, so that
        all nodes have the same time. With `counting`, `Moment.pending_operations` is exact, but the
        transaction may wait for others of the subscription that count. With `skip_busy`, ScopeBusy
        is raised instead of waiting for another node.
        """

    async def scope_ids(self, *, after: ScopeId | None = None, limit: int) -> list[ScopeId]:
        """Return the ids of up to `limit` scopes after `after`, in order."""

    async def locate(self, address: str) -> tuple[ScopeId, InstanceName] | None:
        """Return the scope and instance that have this address, or None."""

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        """Note that instances of these scopes have polled. This makes no journal entry."""

    async def due(self, limit: int) -> Due:
        """Return up to `limit` scopes whose deadline has passed, the oldest deadline first."""

    async def end(self) -> Position:
        """Return the end of the journal, after which a reader gets all later commits."""

    async def events(
        self, choice: Choice, *, before: Mark | None = None, limit: int
    ) -> list[tuple[ScopeId, Event]]:
        """Return events, newest first. Later pages are as fast as the first."""

    async def count_events(self) -> Mapping[tuple[EventType, Phase], int]:
        """Return how many events there are of each type and phase."""

    async def record(self, kind: str, key: str) -> Record | None: ...

    async def records(
        self, kind: str, *, after: str = "", until: str | None = None, limit: int
    ) -> list[Record]:
        """Return records in the byte order of their keys, after `after` and up to `until`."""

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
        """Write a record and return it. With `note`, the same commit writes a journal entry.

        Raises RecordChanged if the revision is not `expected`; 0 means that the record must not
        exist. The journal entry has scope_id "" and revision 0.
        """

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
        """Delete a record. Returns whether it existed. Raises RecordChanged as `keep` does."""


class Alarm(Protocol):
    """An alarm lets one sleeper wait until an instant, or until somebody rings."""

    async def wait(self, until: Instant | None) -> None:
        """Return at `until` or when somebody rings, at once if somebody has rung before."""

    async def pause(self, for_ms: int | None) -> None:
        """Wait for a duration, or until somebody rings. Changes of the wall clock don't matter."""

    def ring(self) -> None: ...

    def close(self) -> None:
        """End the alarm. A virtual clock no longer waits for its owner."""


class Clock(Protocol):
    def now(self) -> Instant: ...

    def steady_ms(self) -> int:
        """Return the milliseconds since a fixed instant. Setting the clock does not change them."""

    def alarm(self) -> Alarm:
        """Return an alarm for one activity, which is busy until it waits or closes the alarm."""


class Order(Struct, frozen=True, kw_only=True):
    """An impact for a driver. Attempts differ only in their number, node and lease."""

    key: EventId
    attempt: int
    """The number of the attempt, from 1 on. A driver refuses it if it has seen a higher one."""
    node: NodeId
    """The node that has this attempt."""
    lease_until_ms: Instant
    """The end of the node's lease by the store's clock. The node renews it while it works."""
    may_be_under_way: bool = False
    """Whether an earlier attempt may have begun the impact, so that `find` must be called first."""
    type: EventType
    operation: OperationKind | None = None
    """The operation that the owner asked for. None if the platform caused the event."""
    scope_id: ScopeId
    instances: tuple[Instance, ...]
    duration_s: int
    lasts_s: int | None = None
    """How long the impact is to last in a rehearsal. Only the simulated driver uses it."""
    started_ms: Instant
    """When the event started, or when the last hook before its impact ended."""
    settings: Mapping[str, str] = {}
    """The settings of the driver for this scope."""


class HookCall(Struct, frozen=True, kw_only=True):
    """One call of a hook, for an order."""

    hook: Hook
    stage: HookStage
    number: int
    """The place of the hook in the list of its stage, from 1 on."""
    tried: int
    """1 for the first try in this attempt, 2 for the next one."""
    outcome: Phase | None = None
    """How the impact went. It is None for a hook before the impact."""
    reason: str = ""
    """Why the impact failed. It is empty if it did not fail."""


class HookResult(Struct, frozen=True, kw_only=True):
    is_done: bool
    result: str
    """How it ended, such as `exit code 1`. It contains no secret."""
    output: str = ""


class Found(StrEnum):
    UNKNOWN = "unknown"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class DriverFailed(Exception):
    """The driver could not carry out the impact. It is tried again a limited number of times."""


class LeaseLost(Exception):
    """Another node has the work now, or may have it. This node must stop its work on it."""


class Lease(Protocol):
    async def confirm(self, alarm: Alarm) -> None:
        """Return if the lease of this node is known to hold. Otherwise raise LeaseLost."""


class Driver(Protocol):
    """A driver really freezes, reboots, redeploys, starts, stops or deletes an instance."""

    async def find(self, order: Order) -> Found:
        """Return what became of the impact. It is called before an order that may be under way."""

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        """Carry out the impact, and return when it is over. Raises DriverFailed if that is not
        possible.

        A key must act at most once: if it is under way, wait for it; if it is done, return. Refuse
        an attempt that is lower than one already seen for the key. The lease was confirmed just
        before the call; a driver that waits before it acts must confirm it again. Wait only with
        `alarm`, so that a virtual clock can move.
        """


Drivers = Mapping[str, Driver]
Ids = Callable[[], EventId]


class Apart(Protocol):
    """A way to run long computations so that other work need not wait for them."""

    async def __call__(self, work: Callable[..., T], *given: Any, is_long: bool = False) -> T:
        """Run `work` with the arguments `given`, and return its result. With `is_long` it may take
        more than a moment; then it must not change its arguments.
        """
