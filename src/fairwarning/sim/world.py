"""One simulated world: nodes with the real engine, one store, one physical world, and a plan."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random

from fairwarning.core.fleet import expand
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, NodeId, ScopeId, operator_actor
from fairwarning.core.refusals import Refused
from fairwarning.engine.ports import Signal, StoreDown
from fairwarning.engine.service import Engine, Rules
from fairwarning.sim import actions
from fairwarning.sim.asked import Asked, Told
from fairwarning.sim.broken import Broken, demand
from fairwarning.sim.clock import NodeClock, SimClock
from fairwarning.sim.driver import SimDriver
from fairwarning.sim.driver import World as PhysicalWorld
from fairwarning.sim.gates import Call, GatedStore, Verdict
from fairwarning.sim.plan import Shape, Step
from fairwarning.stores.memory import MemoryStore

HEALING_ROUNDS_MAX = 4_000
OPERATOR = operator_actor("sim")


@dataclass(slots=True, eq=False)
class Node:
    name: str
    engine: Engine
    clock: NodeClock
    store: GatedStore
    is_alive: bool = True


class World:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.clock = SimClock()
        self.store = MemoryStore(self.clock)
        self.physical = PhysicalWorld()
        self.waiting: list[Call] = []
        self.nodes: list[Node] = []
        self.told: list[Told] = []
        self.asked: list[Asked] = []
        self.scope_ids: list[ScopeId] = []
        self.last_asked: dict[ScopeId, Instant] = {}
        """When an instance of the scope last asked for its document."""
        self.happened: Counter[str] = Counter()
        """What this world has really been through; tests demand that it was not dull."""
        self.trace: list[str] = []
        self._graves: list[object] = []
        self._signals = Random(0)
        self._ids = 0
        self._born = 0

    async def begin(self) -> None:
        self.store.listen(self._deliver)
        scopes = [scope for resource in self.shape.resources for scope in expand(resource)]
        await self.store.create(scopes, by=OPERATOR)
        self.scope_ids = [scope.id for scope in scopes]
        for number in range(self.shape.nodes):
            await self.start_node(number)

    async def start_node(self, number: int) -> None:
        self._born += 1
        clock = NodeClock(self.clock, skew_ms=self.shape.skews_ms[number])
        self.clock.nodes.append(clock)
        name = f"node{number}.{self._born}"
        store = GatedStore(self.store, name, self.waiting)
        engine = Engine(
            store=store,
            clock=clock,
            drivers={"simulated": SimDriver(self.physical)},
            node=NodeId(name),
            ids=self.new_id,
            rules=Rules(operations_pending_max=self.shape.operations_pending_max),
        )
        node = Node(name, engine, clock, store)
        if number < len(self.nodes):
            self.nodes[number] = node
        else:
            self.nodes.append(node)
        await engine.start()
        await quiesce()

    def crash(self, node: Node) -> None:
        """Its calls never answer and its alarms never ring; it cannot even clean up."""
        node.is_alive = False
        node.clock.stopped = True
        # Kept, or the garbage collector would end tasks that must hang for ever.
        self._graves += [call for call in self.waiting if call.node == node.name]
        self.waiting[:] = [call for call in self.waiting if call.node != node.name]
        self._graves.append(node)
        self.happened["crash"] += 1

    async def take(self, step: Step) -> None:
        note = await actions.take(self, step.kind, Random(step.dice))
        self.trace.append(f"{self.clock.now():>14} {step.kind:<12} {note}")
        await quiesce()

    async def release(self, call: Call, verdict: Verdict = Verdict.GO_ON) -> None:
        self.waiting.remove(call)
        if not call.verdict.done():
            call.verdict.set_result(verdict)
        await quiesce()

    async def settle(self) -> None:
        for _ in range(HEALING_ROUNDS_MAX):
            if not self.waiting:
                return
            await self.release(self.waiting[0])
        raise Broken("9 every event ends", "the nodes never come to rest")

    async def heal(self) -> None:
        """No more crashes and outages; everything under way must now come to its end."""
        for number, node in enumerate(self.nodes):
            if not node.is_alive:
                await self.start_node(number)
        for _ in range(HEALING_ROUNDS_MAX):
            await self.settle()
            for impact in self.physical.running():
                if self.shape.is_stubborn:
                    self.physical.fail(impact)
                else:
                    self.physical.finish(impact)
            await quiesce()
            if self.waiting:
                continue
            if not await self.unfinished():
                return
            next_ms = self.clock.next_ms()
            demand("9 every event ends", next_ms is not None, lambda: "nobody has set an alarm")
            assert next_ms is not None
            self.clock.jump(max(next_ms - self.clock.now(), 0))
            await quiesce()

    async def unfinished(self) -> list[EventId]:
        scopes = [await self.store.read(scope_id) for scope_id in self.scope_ids]
        return [event.id for scope in scopes for event in scope.unfinished]

    def ask(self, node: Node, asked: Asked) -> None:
        self.asked.append(asked)
        task = asyncio.create_task(self._ask(node, asked))
        self._graves.append(task)
        task.add_done_callback(lambda done: done.cancelled() or done.result())

    async def _ask(self, node: Node, asked: Asked) -> None:
        try:
            receipt = await node.engine.submit(asked.scope_id, asked.command, by=asked.by)
        except Refused as refused:
            self.told.append(Told(asked=asked, receipt=None, refused=refused))
        except StoreDown:
            self.happened["unknown answer"] += 1
        else:
            self.told.append(Told(asked=asked, receipt=receipt, refused=None))
            self.happened[f"{type(asked.command).__name__} granted"] += 1

    def new_id(self) -> EventId:
        self._ids += 1
        return EventId(f"00000000-0000-4000-8000-{self._ids:012X}")

    def now(self) -> Instant:
        return self.clock.now()

    def _deliver(self, signal: Signal) -> None:
        for node in self.nodes:
            lost = self._signals.random() < self.shape.signal_loss
            if node.is_alive and node.store.listener is not None and not lost:
                node.store.listener(signal)


async def quiesce() -> None:
    """Lets every task run until it waits for something that only the world can give."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    # asyncio has no public way to ask whether anything is ready to run.
    while loop._ready:  # type: ignore[attr-defined]  # noqa: ASYNC110
        await asyncio.sleep(0)


async def bury() -> None:
    """Ends the tasks of nodes that crashed or were left running."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
