"""An engine on the reference store and a virtual clock, and stores that fail on request."""

from collections.abc import Callable
from itertools import count

from fairwarning.core.commands import Activate
from fairwarning.core.model import ENGINE, EventId, NodeId, Scope, ScopeId, operator_actor
from fairwarning.core.resources import AvailabilitySet, Member, Place, Resource
from fairwarning.drivers.simulated import SimulatedDriver
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Due, Entry, Receipt, Store, StoreDown
from fairwarning.engine.service import Engine, Rules
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import event_id

ME = operator_actor("me")
WEB = AvailabilitySet(
    name="web", update_domains=2, members=tuple(Member(name=f"web-{n}") for n in range(4))
)
TEST_WEB = AvailabilitySet(
    name="web", update_domains=2, members=WEB.members, place=Place(test=True)
)


def ids() -> Callable[[], EventId]:
    numbers = count(1)
    return lambda: event_id(next(numbers))


class Rig:
    """One store and one clock; as many nodes as a test starts."""

    def __init__(self, store: Store | None = None, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.store: Store = store or MemoryStore(self.clock)
        self.driver = SimulatedDriver(self.clock)
        self._ids = ids()

    async def node(self, name: str = "n1", rules: Rules | None = None) -> Engine:
        engine = Engine(
            store=self.store,
            clock=self.clock,
            drivers={"simulated": self.driver},
            node=NodeId(name),
            ids=self._ids,
            rules=rules,
        )
        await engine.start()
        return engine

    async def declare(self, engine: Engine, resource: Resource = WEB) -> Scope:
        scope, *_ = await engine.declare([resource], by=ME)
        await engine.submit(scope.id, Activate(), by=ENGINE)
        return scope

    async def history(self) -> list[str]:
        entries = await self.store.journal(limit=10_000)
        return [type(entry.transition).__name__ for entry in entries]

    async def entries(self) -> list[Entry]:
        return await self.store.journal(limit=10_000)


def kill(engine: Engine) -> None:
    """As kill -9 leaves it: nothing is given back, nothing is cleaned up."""
    assert engine._running is not None
    engine._running.cancel()
    for task in engine._outbox._tasks:
        task.cancel()


class FailingStore(MemoryStore):
    """Unreachable while `is_down`; with `loses_answers` it writes, and then is unreachable."""

    is_down = False
    loses_answers = False

    async def transact(self, *args: object, **named: object) -> Receipt:
        self._fail()
        receipt = await super().transact(*args, **named)  # type: ignore[arg-type]
        if self.loses_answers:
            raise StoreDown("the answer was lost")
        return receipt

    async def due(self, limit: int) -> Due:
        self._fail()
        return await super().due(limit)

    async def read(self, scope_id: ScopeId) -> Scope:
        self._fail()
        return await super().read(scope_id)

    def _fail(self) -> None:
        if self.is_down:
            raise StoreDown("switched off by the test")
