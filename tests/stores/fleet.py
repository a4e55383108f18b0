"""Short ways to a stored fleet and to things that happen to it."""

from itertools import count

from fairwarning.core.commands import Activate, Command
from fairwarning.core.decide import Change, decide
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.limits import DEFAULT_TIMING, Timing
from fairwarning.core.model import EventId, NodeId, Scope, ScopeId, operator_actor
from fairwarning.core.resources import (
    AvailabilitySet,
    Member,
    Place,
    ScaleSet,
    VirtualMachine,
    expand,
)
from fairwarning.engine.protocols import START, Entry, Moment, Receipt, Step, Store

ME = operator_actor("me")
NODE = NodeId("n")
_numbers = count(1)


def new_id() -> EventId:
    return EventId(f"00000000-0000-4000-8000-{next(_numbers):012X}")


def vm(name: str, *addresses: str, subscription: str = "s") -> Scope:
    place = Place(subscription=subscription)
    (scope,) = expand(VirtualMachine(name=name, addresses=addresses, place=place))
    return scope


def web(name: str = "web", size: int = 4) -> Scope:
    members = tuple(Member(name=f"{name}-{number}") for number in range(size))
    (scope,) = expand(AvailabilitySet(name=name, update_domains=2, members=members))
    return scope


def workers(name: str, *addresses: str) -> Scope:
    """A scale set whose instances are warned before they are deleted."""
    resource = ScaleSet(
        name=name,
        capacity=len(addresses),
        addresses=addresses,
        terminate_notice_ms=5 * MINUTE_MS,
    )
    (scope,) = expand(resource)
    return scope


def deciding(
    command: Command, *, timing: Timing = DEFAULT_TIMING, node: NodeId | None = None
) -> Step:
    def step(scope: Scope, moment: Moment) -> Change:
        return decide(scope, command, moment.now_ms, timing=timing, node=node)

    return step


async def submit(store: Store, scope_id: ScopeId, command: Command) -> Receipt:
    return await store.transact(scope_id, deciding(command), by=ME)


async def declare(store: Store, *scopes: Scope) -> ScopeId:
    """Activated, so that events are announced; the first one's id is returned."""
    await store.create(scopes, by=ME)
    for scope in scopes:
        await submit(store, scope.id, Activate())
    return scopes[0].id


async def whole_journal(store: Store, scope_id: ScopeId | None = None) -> list[Entry]:
    """Page by page, as every reader has to."""
    entries: list[Entry] = []
    after = START
    while page := await store.journal(after=after, scope_id=scope_id, limit=100):
        entries += page
        after = page[-1].position
    return entries
