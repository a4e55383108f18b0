"""The simulated nodes: each has the parts of the real program, and its own view of the store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, cast

from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, NodeId, ScopeId
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.protocols import Listener, Order, Signal, Store
from fairwarning.engine.rollouts import Rollouts
from fairwarning.engine.service import Engine, Rules
from fairwarning.metadata.endpoint_state import EndpointState
from fairwarning.metadata.handlers import Handlers
from fairwarning.metadata.settings import EndpointRules
from fairwarning.notifications.dispatcher import Notifications
from fairwarning.simulation.calls import Calls
from fairwarning.simulation.clock import NodeClock
from fairwarning.simulation.driver import SimDriver
from fairwarning.simulation.driver import World as PhysicalWorld
from fairwarning.simulation.notifications import RecordedSender, Sent
from fairwarning.simulation.plan import Shape
from fairwarning.simulation.records import FeedReader

_ENDPOINT = EndpointRules(requests_per_second_max=0)

_WRITES = ("create", "transact", "note_seen", "keep", "drop")

AGAIN = 0.2
"""The probability that a delivered signal is delivered again."""


class State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    """The node has given back its work. Calls that were under way may still answer."""
    DEAD = "dead"


class Node:
    def __init__(
        self,
        name: str,
        shape: Shape,
        clock: NodeClock,
        inner: Store,
        calls: Calls,
        physical: PhysicalWorld,
        arrived: list[Sent],
        ids: Callable[[], EventId],
        trouble: Callable[[str, Order], Awaitable[str]],
    ) -> None:
        self.name = name
        self.clock = clock
        self.store = InterceptedStore(inner, name, calls)
        self._store = store = cast(Store, self.store)
        self.driver = SimDriver(physical, name, clock.base.now, trouble)
        self.state = State.STARTING
        self.engine = Engine(
            store=store,
            clock=clock,
            drivers={"simulated": self.driver},
            node=NodeId(name),
            ids=ids,
            rules=Rules(operations_pending_max=shape.operations_pending_max),
        )
        self.sender = RecordedSender(name, calls, arrived)
        self.rollouts = Rollouts(self.engine, store, clock) if shape.has_rollouts else None
        self.notifications: Notifications | None = None
        if shape.targets:
            random_number = Random(name).random
            self.notifications = Notifications(
                store=store, clock=clock, sender=self.sender, random_number=random_number
            )
        self.shows = shape.has_clients
        self.service: EndpointState | None = None
        self.readers: list[FeedReader] = []
        self.last_polls: dict[ScopeId, Instant] = {}
        """When this node last answered a poll of the scope."""
        self.has_lost_answers = False
        """Whether the answer to a commit was lost that may have handed work to this node."""
        self.calls_when_stopped: int | None = None
        """How many calls of drivers all nodes had made when this node had stopped."""

    @property
    def is_alive(self) -> bool:
        return self.state is State.RUNNING

    @property
    def is_dead(self) -> bool:
        return self.state is State.DEAD

    async def start(self) -> None:
        """Starts the parts in the order of the program. Raises StoreDown if the store fails."""
        if self.shows:
            views = await self.engine.show()
            handlers = Handlers(self.engine, views, self._store, self.clock, _ENDPOINT)
            self.service = EndpointState(views, handlers, _ENDPOINT, Faults(self.clock, 0))
        if self.notifications is not None:
            await self.notifications.start()
        if self.rollouts is not None:
            await self.rollouts.start()
        await self.engine.start()
        self.state = State.RUNNING

    async def stop(self) -> None:
        self.state = State.STOPPING
        if self.rollouts is not None:
            await self.rollouts.stop()
        if self.notifications is not None:
            await self.notifications.stop()
        if self.service is not None:
            await self.service.close()
        await self.engine.stop()
        self.state = State.STOPPED

    def die(self) -> None:
        """Ends the node without cleaning up. Its alarms never ring again."""
        self.state = State.DEAD
        self.clock.stopped = True
        self.driver.is_dead = True
        for reader in self.readers:
            reader.stop()


class InterceptedStore:
    """The store as one node sees it. It passes each method of `Store` on to the real store, through
    `Calls.intercept`: every call stops twice for the world, and may fail.
    """

    def __init__(self, inner: Store, node: str, calls: Calls) -> None:
        self._inner = inner
        self._node = node
        self._calls = calls
        self._listeners: list[Listener] = []
        self.seen_noted: Callable[[Mapping[ScopeId, Instant]], None] = lambda _: None
        """A function that is called with notes of polls after they are stored."""

    @property
    def is_shared(self) -> bool:
        return self._inner.is_shared

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, signal: Signal) -> None:
        """Tells the listeners. The world calls this late, twice, in any order or not at all."""
        for listener in self._listeners:
            listener(signal)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._inner, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            may_be_busy = kwargs.pop("skip_busy", False)
            # The detail says in a trace what was asked for: ids, a kind and key, or a position.
            words = (*args[:2], kwargs.get("after"))
            detail = " ".join(each for each in words if isinstance(each, str))

            async def work() -> Any:
                result = await method(*args, **kwargs)
                if name == "note_seen":
                    self.seen_noted(*args)
                return result

            passing = self._calls.intercept(
                self._node, name, work, detail=detail, may_be_busy=may_be_busy
            )
            return await (_finished(passing) if name in _WRITES else passing)

        return call


async def _finished(write: Awaitable[Any]) -> Any:
    """Runs the write to its end even if the caller is cancelled, as all our stores do."""
    job = asyncio.ensure_future(write)
    # If the caller was cancelled, nobody gets the error.
    job.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(job)


@dataclass(slots=True, eq=False)
class Undelivered:
    node: str
    signal: Signal

    def __str__(self) -> str:
        scope = self.signal.scope
        what = f"revision {scope.revision}" if scope is not None else "look again"
        return f"{self.node} {self.signal.scope_id or 'outside all scopes'} {what}"


class Signals:
    """Delivers signals from the store to the nodes: late, twice, in any order, or not at all.

    The node that made a change always gets the signal, with the changed scope. Another node gets
    only the news that there is a change, and this signal may be lost. On a store with one node no
    signal is lost, because that node does not poll for lost signals.
    """

    def __init__(self, shape: Shape, nodes: Callable[[], Sequence[Node]]) -> None:
        self._is_late = shape.has_late_signals
        self._loss = shape.signal_loss if shape.is_shared else 0.0
        self._nodes = nodes
        self._rng = Random(0)
        self.waiting: list[Undelivered] = []

    def send(self, signal: Signal, committer: str | None) -> None:
        """Sends the signal of a commit to the nodes. `committer` is the node that committed."""
        for node in self._nodes():
            if node.is_dead:
                continue
            is_own = node.name == committer
            if not is_own and self._rng.random() < self._loss:
                continue
            told = Undelivered(node.name, signal if is_own else replace(signal, scope=None))
            if self._is_late:
                self.waiting.append(told)
            else:
                self._tell(told)

    def deliver(self, told: Undelivered, rng: Random | None = None) -> None:
        """Delivers a signal. With `rng`, it may be delivered again later."""
        if rng is None or rng.random() >= AGAIN:
            self.waiting.remove(told)
        self._tell(told)

    def kill(self, node: str) -> None:
        self.waiting[:] = [each for each in self.waiting if each.node != node]

    def _tell(self, told: Undelivered) -> None:
        for node in self._nodes():
            if node.name == told.node and not node.is_dead:
                node.store.tell(told.signal)
