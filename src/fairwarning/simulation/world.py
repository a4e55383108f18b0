"""One simulated world has nodes with the real engine, a store, a physical world and clients."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from random import Random
from typing import Any, NamedTuple

from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, ScopeId, operator_actor
from fairwarning.core.refusals import Refused
from fairwarning.core.resources import expand
from fairwarning.core.transitions import HandedOver
from fairwarning.engine.protocols import START, Order, Receipt, Signal, Store, StoreDown
from fairwarning.notifications.records import NotificationRecords
from fairwarning.simulation.actions import ACTIONS
from fairwarning.simulation.calls import Call, Calls, Decision
from fairwarning.simulation.clients import Client
from fairwarning.simulation.clock import NodeClock, SimClock, current
from fairwarning.simulation.driver import World as PhysicalWorld
from fairwarning.simulation.nodes import Node, Signals, State
from fairwarning.simulation.notifications import Sent, targets
from fairwarning.simulation.plan import Shape, Step
from fairwarning.simulation.records import (
    Broken,
    CallerAnswer,
    CallerRequest,
    Documents,
    FeedReader,
)
from fairwarning.simulation.stores import StoreCopy, StorePlace
from fairwarning.stores.memory import MemoryStore

ROUNDS_MAX = 4_000  # A world that needs more has a bug.
OPERATOR = operator_actor("sim")


class Note(NamedTuple):
    """The store has noted when an instance of a scope last polled."""

    scope_id: ScopeId
    asked_ms: Instant
    at_ms: Instant


class World:
    def __init__(self, shape: Shape, place: StorePlace) -> None:
        self.shape = shape
        self.clock = SimClock(current())
        self.store: Store
        self.physical = PhysicalWorld()
        self.calls = Calls()
        self.calls.on_outcome = self._note_outcome
        self.calls.on_failure = self._note_failure
        self.signals = Signals(shape, lambda: self.nodes)
        self.nodes: list[Node] = []
        self.gone: list[Node] = []
        """The nodes that have ended and in whose place another node runs."""
        self.clients: list[Client] = []
        self.readers: list[FeedReader] = []
        self.arrived: list[Sent] = []
        self.entries_before_targets = 0
        """How many journal entries there were when the targets of notifications were created."""
        self.documents = Documents()
        self.answers: list[CallerAnswer] = []
        self.requests: list[CallerRequest] = []
        self.callers: list[asyncio.Task[None]] = []
        self.rollout_ids: list[str] = []
        self.scope_ids: list[ScopeId] = []
        self.notes: list[Note] = []
        """Notes of polls, as far as they are in the store."""
        self.past = 0
        """How often the store has stepped back."""
        self.clock_steps = 0
        self.due_since_ms: int | None = None
        """The steady time since which a scope has been due without any node acting on it."""
        self.was_stepped_ahead = False
        """Whether the store's clock was stepped ahead, so that leases may end early."""
        self.save: Callable[[], Any] = lambda: None
        self.restore: Callable[[Any], None] = lambda _: None
        """Called with a copy when the store steps back, so that the checkers go back too."""
        self.happened: Counter[str] = Counter()
        """Counts what has happened in this world; tests demand that enough has."""
        self.errors: list[BaseException] = []
        """The errors that no step expected. The first of them ends the run."""
        self.trace: list[str] = []
        self.backups: list[tuple[StoreCopy, list[Note], Any]] = []
        self._place = place
        self._exits = ExitStack()
        self._heard: list[tuple[Signal, str | None]] | None = None
        self._tasks: list[object] = []
        self._ids = 0
        self._born = 0

    async def begin(self) -> None:
        shape = self.shape
        self.store = await self._place.open(
            self.clock, self._exits, is_shared=shape.is_shared, quick=shape.commits_in_loop
        )
        self.store.listen(self._on_signal)
        scopes = [scope for resource in shape.resources for scope in expand(resource)]
        await self.store.create(scopes, by=OPERATOR)
        self.scope_ids = [scope.id for scope in scopes]
        for target in targets(shape.targets):
            await NotificationRecords(self.store).add_target(target, by=OPERATOR, why="")
        self.entries_before_targets = await self._count_entries()
        for number in range(shape.nodes):
            self.start_node(number)
        await self.settle()

    async def end(self) -> None:
        """Cancels all tasks of the nodes, and removes the store."""
        here = asyncio.current_task()
        own = [task for task in asyncio.all_tasks() if task is not here and _is_ours(task)]
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)
        async with AsyncExitStack() as exits:
            exits.callback(self._exits.close)
            if hasattr(self, "store"):
                exits.push_async_callback(self.store.close)

    def start_node(self, number: int) -> None:
        self._born += 1
        clock = NodeClock(self.clock, skew_ms=self.shape.skews_ms[number])
        self.clock.nodes.append(clock)
        node = Node(
            f"node{number}.{self._born}",
            self.shape,
            clock,
            self.store,
            self.calls,
            self.physical,
            self.arrived,
            self.new_id,
            self._trouble,
        )
        node.sender.past = self.past
        node.store.seen_noted = lambda seen: self._note_polls(node, seen)
        if number < len(self.nodes):
            self.gone.append(self.nodes[number])
            self.nodes[number] = node
        else:
            self.nodes.append(node)
        self.spawn(self._start(node))

    async def _start(self, node: Node) -> None:
        try:
            await node.start()
        except StoreDown:
            self.happened["start failed"] += 1
            self.crash(node)
            return
        for number in range(self.shape.readers):
            await self.calls.counted(self._read_changes(node, from_start=number == 0))

    async def _read_changes(self, node: Node, *, from_start: bool) -> None:
        at = START if from_start else await self.store.end()
        begin = 0 if from_start else await self._count_entries()
        reader = FeedReader(node.name, node.engine.changes(at), begin=begin)
        node.readers.append(reader)
        self.readers.append(reader)

    async def _count_entries(self) -> int:
        return len(await self.store.journal(limit=100_000))

    def stop_node(self, node: Node) -> None:
        """Begins to stop a node. Its clients lose their connections, and its calls still end."""
        node.state = State.STOPPING
        self._cut_off(node)
        for reader in node.readers:
            reader.leave()
        self.spawn(self._stop(node))

    async def _stop(self, node: Node) -> None:
        await node.stop()
        node.calls_when_stopped = len(self.physical.calls)
        self.happened["stop"] += 1

    def crash(self, node: Node) -> None:
        """Kills a node. Its calls never answer, its alarms never ring, and it cannot clean up."""
        node.die()
        self.calls.kill(node.name)
        self.signals.kill(node.name)
        self._cut_off(node)
        self._tasks.append(node)

    def _cut_off(self, node: Node) -> None:
        for client in self.clients:
            if client.question is not None and client.question.node is node:
                client.cut_off()

    async def take(self, step: Step) -> None:
        note = await ACTIONS[step.kind](self, Random(step.seed))
        self.note(step.kind, note)
        await self.quiesce()

    def note(self, kind: str, what: object) -> None:
        """Adds a line to the trace."""
        self.trace.append(f"{self.clock.now():>14} {kind:<13} {what}")

    def free_calls(self) -> list[Call]:
        """Returns the waiting calls that are not held back, always in the same order."""
        free = [call for call in self.calls.waiting if not call.is_held]
        return sorted(free, key=lambda call: call.place)

    async def release(self, call: Call, decision: Decision = Decision.GO_ON) -> None:
        self.calls.release(call, decision)
        await self.quiesce()

    def _note_failure(self, call: Call, decision: Decision) -> None:
        """Counts a failed call. It also notes on the node that it may have unknown work."""
        if decision is Decision.BUSY:
            self.happened["busy"] += 1
            return
        self.happened["answer lost" if call.is_done else "call failed"] += 1
        self.happened[f"{call.name} failed"] += 1
        for node in self.nodes:
            if node.name == call.node and call.name == "transact":
                node.has_lost_answers |= call.is_done or not node.is_alive

    async def settle(self, *, signals: bool = True) -> None:
        """Carries out all calls that are not held back, and delivers the signals if asked to."""
        await self.quiesce()
        for _ in range(ROUNDS_MAX):
            if signals and self.signals.waiting:
                signal = self.signals.waiting[0]
                self.note("signal", signal)
                self.signals.deliver(signal)
                await self.quiesce()
                continue
            free = sorted(self.free_calls(), key=lambda call: call.number)
            if not free:
                return
            # A real database could answer several calls in a different order each time.
            for call in free if self._place.is_memory else free[:1]:
                if call.name == "transact":
                    self.note("call", call)
                self.calls.release(call, Decision.GO_ON)
            await self.quiesce()
        raise Broken("9 every event ends", "the nodes never come to rest")

    async def quiesce(self) -> None:
        """Runs all tasks until each waits for the world. Raises the first error of a task."""
        loop = current()
        while True:
            await asyncio.sleep(0)
            while loop.has_ready():  # noqa: ASYNC110  (nobody tells when all are at rest)
                await asyncio.sleep(0)
            for node in (*self.nodes, *self.gone):
                if node.state is State.STOPPED and not self.calls.has_any(node.name):
                    self.crash(node)
            if not await self.calls.wait_for_running():
                break
        if self.errors:
            raise self.errors[0]

    def back_up(self) -> None:
        assert isinstance(self.store, MemoryStore)
        self.backups.append((StoreCopy(self.store), [*self.notes], self.save()))

    def step_back(self, number: int) -> None:
        """Sets the store back to a copy while the nodes run, like a restore of a backup."""
        assert isinstance(self.store, MemoryStore)
        copy, notes, saved = self.backups[number]
        del self.backups[number + 1 :]
        copy.put_back(self.store)
        self.notes = [*notes]
        self.past += 1
        self.physical.past = self.past
        for node in self.nodes:
            node.sender.past = self.past
            node.last_polls.clear()
        self.restore(saved)

    def gather_signals(self) -> None:
        """Holds signals back until `tell_gathered`."""
        self._heard = []

    def tell_gathered(self) -> None:
        heard, self._heard = self._heard or [], None
        for signal, committer in heard:
            self.signals.send(signal, committer)

    def drop_gathered(self) -> None:
        """Drops the signals that were held back, because their changes were undone."""
        self._heard = []

    async def unfinished(self) -> list[EventId]:
        scopes = [await self.store.read(scope_id) for scope_id in self.scope_ids]
        return [event.id for scope in scopes for event in scope.unfinished]

    def ask(self, node: Node, request: CallerRequest) -> None:
        self.requests.append(request)
        self.callers.append(self.spawn(self.submit(node, request)))

    def spawn(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.errors.append(error)

    async def submit(self, node: Node, request: CallerRequest) -> None:
        past = self.past
        try:
            receipt = await node.engine.submit(request.scope_id, request.command, by=request.by)
        except Refused as refused:
            answer = CallerAnswer(request=request, receipt=None, refused=refused)
        except StoreDown:
            self.happened["unknown answer"] += 1
            return
        else:
            answer = CallerAnswer(request=request, receipt=receipt, refused=None)
            self.happened[f"{type(request.command).__name__} granted"] += 1
        # If the store was set back meanwhile, the answer may be about a change that was lost.
        if past == self.past:
            self.answers.append(answer)

    def new_id(self) -> EventId:
        self._ids += 1
        return EventId(f"00000000-0000-4000-8000-{self._ids:012X}")

    def now(self) -> Instant:
        return self.clock.now()

    async def _trouble(self, node: str, order: Order) -> str:
        """Returns why this node must not carry out the order now, or "" if it may."""
        scope = await self.calls.counted(self.store.read(order.scope_id))
        event = scope.events.get(order.key)
        work = None if event is None else event.work
        if work is None:
            return "there is no such work"
        if work.node != node or not await self._had_all_since(node, order):
            return f"{work.node} has it, attempt {work.attempt}"
        until = work.lease_until_ms or Instant(0)
        late_ms = self.now() - until
        return f"the lease ended {late_ms} ms ago" if late_ms >= 0 else ""

    async def _had_all_since(self, node: str, order: Order) -> bool:
        """Returns whether this node was handed the order's attempt and every later attempt."""
        history = await self.calls.counted(self.store.history(event_id=order.key, limit=1_000))
        handed = [each.transition for each in history if isinstance(each.transition, HandedOver)]
        return all(each.node == node for each in handed if each.attempt >= order.attempt)

    def _note_polls(self, node: Node, seen: Mapping[ScopeId, Instant]) -> None:
        for scope_id, told_ms in seen.items():
            if scope_id in node.last_polls:
                # A poll that came while the note was being written is noted the next time.
                asked_ms = min(node.last_polls[scope_id], told_ms)
                self.notes.append(Note(scope_id, asked_ms, self.now()))

    def last_poll_ms(self, scope_id: ScopeId, before: Instant) -> Instant:
        """Returns the time of the last poll that the store knew of before this instant."""
        known = (n.asked_ms for n in self.notes if n.scope_id == scope_id and n.at_ms < before)
        return max(known, default=Instant(0))

    def _on_signal(self, signal: Signal) -> None:
        committer = self.calls.committing
        if self._heard is None:
            self.signals.send(signal, committer)
        else:
            self._heard.append((signal, committer))

    def _note_outcome(self, result: object) -> None:
        if isinstance(result, Receipt):
            self.documents.note(result.scope, self.past)


def _is_ours(task: "asyncio.Task[Any]") -> bool:
    """Returns whether the world must end this task. A store ends its own tasks."""
    return not task.get_name().startswith("signals ")
