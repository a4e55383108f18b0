"""This module has what the engine needs from outside (store, clock, driver) as small protocols."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NewType, Protocol, TypeVar

from msgspec import Struct

from fairwarning.core.decide import Change
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
"""A place in the journal. Opaque; only the store that made it can read it."""

START = Position("")
T = TypeVar("T")


class StoreDown(Exception):
    """The store cannot be reached, or cannot write. Nothing that was promised is lost.

    A command that ended like this may or may not have happened; asking again is safe.
    """


class ScopeBusy(Exception):
    """Another node is at work on this scope, and the caller did not want to wait."""


class Moment(Struct, frozen=True, kw_only=True):
    """What a step may know apart from its scope."""

    now_ms: Instant
    pending_operations: int = 0
    """How many operations are pending in the subscription; counted only if the transaction asked
    for it."""


Step = Callable[[Scope, Moment], Change]


class Entry(Struct, frozen=True, kw_only=True):
    """One line of the journal: what happened, when, who asked, and why."""

    position: Position
    scope_id: ScopeId
    revision: int
    at_ms: Instant
    by: Actor
    why: str
    transition: Transition


class Receipt(Struct, frozen=True, kw_only=True):
    """Proof that a change is durable."""

    scope: Scope
    at_ms: Instant
    transitions: tuple[Transition, ...]


class Due(Struct, frozen=True, kw_only=True):
    now_ms: Instant
    scope_ids: tuple[ScopeId, ...]
    next_deadline_ms: Instant | None
    """The earliest deadline that is still ahead."""


class Signal(Struct, frozen=True, kw_only=True):
    """A signal says that a scope changed and must be looked at. A lost one only delays."""

    scope_id: ScopeId
    next_deadline_ms: Instant | None
    scope: Scope | None = None
    """The scope as it is now, if this node made the change; another node's must be read."""


class Record(Struct, frozen=True, kw_only=True):
    """A small document of the control plane: a token, a rollout, a notification target."""

    kind: str
    key: str
    revision: int
    """1 when it is new, and one more with each change."""
    body: str
    """JSON; the store does not look into it."""


class RecordChanged(Exception):
    """Somebody else changed the record first; read it again."""


class Fence(Struct, frozen=True, kw_only=True):
    """A fence names a record that must be unchanged when a change is stored, or nothing is stored.

    The check and the change are one commit. So whoever changes the record afterwards finds all that
    was done behind the fence, and whoever comes too late does nothing.
    """

    record: Record
    """Its body is compared too: a record that was removed begins again at revision 1."""
    then: str | None = None
    """The body that the record gets in the same commit, at the next revision; None: it stays."""


class FenceBroken(Exception):
    """The record of a fence was changed by somebody else. Nothing was stored."""

    def __init__(self, fence: Fence) -> None:
        record = fence.record
        super().__init__(f"{record.kind} {record.key!r} is no longer at revision {record.revision}")
        self.fence = fence


class Choice(Struct, frozen=True, kw_only=True):
    """A choice of events among all that ever were. An empty field allows any."""

    phases: tuple[Phase, ...] = ()
    types: tuple[EventType, ...] = ()
    sources: tuple[Source, ...] = ()
    scope_id: ScopeId | None = None
    instance: InstanceName | None = None


class Mark(Struct, frozen=True, kw_only=True):
    """A mark is a place in the list of events, which is sorted by creation and then by id."""

    created_ms: Instant
    event_id: EventId


Listener = Callable[[Signal], None]


class Store(Protocol):
    """The store keeps scopes and their journal. It decides nothing; `tests/stores` is its contract.

    Every method raises StoreDown when the store cannot answer. Those that take fences raise
    FenceBroken if one of them does not hold, and have then stored nothing.
    """

    @property
    def is_shared(self) -> bool:
        """Whether other nodes may write too, so that lost signals must be made up for."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def listen(self, listener: Listener) -> None:
        """Call `listener` in the event loop after each commit, of this node or of another."""
        ...

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        """Create all of the scopes or none. Refuses an id or an address that is taken."""
        ...

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
        """Run `step` on the latest scope, alone, and keep what it returns.

        The scope and its journal entries are stored together or not at all. Whatever `step`
        raises comes out unchanged and nothing is stored. `now` is the store's own clock, so
        that a cluster has one. `counting` makes `pending_operations` exact, at the price of
        waiting for other counting transactions of the subscription. `skip_busy` raises
        ScopeBusy instead of waiting for another node.
        """
        ...

    async def read(self, scope_id: ScopeId) -> Scope:
        """The scope as of one instant. Refuses an unknown id."""
        ...

    async def scope_ids(self, *, after: ScopeId | None = None, limit: int) -> list[ScopeId]:
        """The ids of scopes in order, so that a reader can page through the fleet."""
        ...

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        """The scopes of the same page."""
        ...

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        """Any event that ever was, also a finished one. Refuses an unknown id."""
        ...

    async def locate(self, address: str) -> tuple[ScopeId, InstanceName] | None:
        """The scope and instance that have this address, or None."""
        ...

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        """Note that instances of these scopes asked for their document; it is no part of the
        history.
        """
        ...

    async def due(self, limit: int) -> Due:
        """The scopes whose deadline has come, most overdue first."""
        ...

    async def end(self) -> Position:
        """The end of the journal. A reader that goes on from here misses nothing that is committed
        from now on.
        """
        ...

    async def journal(
        self,
        *,
        after: Position = START,
        scope_id: ScopeId | None = None,
        limit: int,
        inclusive: bool = False,
    ) -> list[Entry]:
        """Entries in commit order. A reader that goes on from the last position misses none.

        `inclusive` also gives the entry at `after` itself, if there is one.
        """
        ...

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        """Entries of the journal, newest first; `event_id` chooses those of one event."""
        ...

    async def events(
        self, choice: Choice, *, before: Mark | None = None, limit: int
    ) -> list[tuple[ScopeId, Event]]:
        """Events that ever were, newest first. A page costs the same wherever it lies."""
        ...

    async def count_events(self) -> Mapping[tuple[EventType, Phase], int]:
        """How many events there are of each type and phase."""
        ...

    async def record(self, kind: str, key: str) -> Record | None: ...

    async def records(
        self, kind: str, *, after: str = "", until: str | None = None, limit: int
    ) -> list[Record]:
        """Records in order of key (compared byte by byte), `after` excluded and
        `until` included.
        """
        ...

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
        """Write a record; with a note, also a line of history, in the same commit.

        `expected` is the revision that it must have now, 0 for none; raises RecordChanged. The line
        has scope_id "" and revision 0.
        """
        ...

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
        """Delete a record. Returns whether there was one."""
        ...


class Alarm(Protocol):
    """The alarm of one sleeper waits for an instant or until it is rung, whichever is first."""

    async def wait(self, until: Instant | None) -> None:
        """Return at `until`, or as soon as somebody rings; at once if it was rung before."""
        ...

    async def pause(self, for_ms: int | None) -> None:
        """Wait for a duration, which no step of the clock makes longer or shorter, or until
        somebody rings.
        """
        ...

    def ring(self) -> None: ...

    def close(self) -> None:
        """End the alarm. A virtual clock no longer waits for its sleeper."""
        ...


class Clock(Protocol):
    def now(self) -> Instant: ...

    def steady_ms(self) -> int:
        """Milliseconds since some instant, which no step of the clock changes."""
        ...

    def alarm(self) -> Alarm:
        """An alarm for one activity; a virtual clock takes it to be busy until it
        waits or closes.
        """
        ...


class Order(Struct, frozen=True, kw_only=True):
    """An order is an impact to carry out, the same in every attempt but for its number and its
    node.
    """

    key: EventId
    attempt: int
    """1, 2, …: whoever has seen a higher one of this key must refuse a lower one."""
    node: NodeId
    """The node that has this attempt."""
    lease_until_ms: Instant
    """Until when the node is known to have it, by the store's clock; a living node renews that."""
    may_be_under_way: bool = False
    """Whether an earlier attempt may have begun it, so that `find` must be asked first."""
    type: EventType
    operation: OperationKind | None = None
    """What an owner asked for, where the type alone does not say; None if the platform did it."""
    scope_id: ScopeId
    instances: tuple[Instance, ...]
    duration_s: int
    lasts_s: int | None = None
    """How long a rehearsal is to look under way; only the simulated driver asks."""
    started_ms: Instant
    settings: Mapping[str, str] = {}
    """The driver's settings of this scope."""


class Found(StrEnum):
    UNKNOWN = "unknown"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class DriverFailed(Exception):
    """The driver could not do it. It will be asked again, a limited number of times."""


class LeaseLost(Exception):
    """Another node has the work now, or may have it. Nothing more may be done here."""


class Lease(Protocol):
    async def confirm(self, alarm: Alarm) -> None:
        """Return only while this node's lease is known to hold; otherwise raise LeaseLost."""
        ...


class Driver(Protocol):
    """A driver really freezes, reboots, redeploys, stops or deletes an instance."""

    async def find(self, order: Order) -> Found:
        """What became of this key. It is asked before each order that may be under way."""
        ...

    async def carry_out(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        """Return when the impact is over; raise DriverFailed if it could not be done.

        A key acts at most once: if it is under way, join it; if it is done, return. A lower attempt
        than one already seen of its key is refused. The lease was confirmed just before the call; a
        driver that waits for anything before acting confirms it again. Sleep with `alarm` and with
        nothing else, so that a virtual clock can move.
        """
        ...


Drivers = Mapping[str, Driver]
Ids = Callable[[], EventId]


class Apart(Protocol):
    """A way to do long work of our own where it holds nobody up."""

    async def __call__(self, work: Callable[..., T], *given: Any, is_long: bool = False) -> T:
        """Do the work. `is_long` says that it may take more than a moment; then it changes nothing
        that it is given.
        """
        ...
