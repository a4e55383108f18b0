"""The engine runs each command as one transaction, and carries out what follows from it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field

from fairwarning.core import limits
from fairwarning.core.commands import Approve, Cancel, Command, Postpone, Tick
from fairwarning.core.decide import Change, decide
from fairwarning.core.limits import Timing
from fairwarning.core.model import ENGINE, Actor, EventId, NodeId, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import Resource, expand
from fairwarning.engine.activity import SeenNotes
from fairwarning.engine.change_feed import Feed
from fairwarning.engine.document_views import OtherPast, Views
from fairwarning.engine.follower import Follower
from fairwarning.engine.impact_hooks import RunHook, no_hooks
from fairwarning.engine.outbox import Outbox
from fairwarning.engine.protocols import (
    START,
    Clock,
    Drivers,
    Entry,
    Fence,
    Ids,
    Moment,
    Position,
    Receipt,
    Signal,
    Step,
    Store,
    call_limit_s,
    within,
)
from fairwarning.engine.timers import Ticker

_log = logging.getLogger(__name__)

Precondition = Callable[[Scope], None]
Observer = Callable[[Receipt, Actor, str, float], None]
"""Called after each commit of this node: with receipt, actor, reason and the seconds it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of the engine that an operator may set."""

    timing: Timing = field(default=limits.DEFAULT_TIMING)
    operations_pending_max: int = limits.OPERATIONS_PENDING_MAX


class Engine:
    """The engine of one node. Any number of nodes may share a store."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        drivers: Drivers,
        node: NodeId,
        ids: Ids,
        run_hook: RunHook = no_hooks,
        rules: Rules | None = None,
        takes_work: bool = True,
    ) -> None:
        """If `takes_work` is false, this node carries out commands, and leaves all that follows
        from them to the nodes that share the store. Do not call `start` then.
        """
        self._store = store
        self._clock = clock
        self._node = node
        self._name = node
        self._era = 0
        """A number that rises when the store has stepped back."""
        self._ids = ids
        self._rules = rules or Rules()
        self._ticker = Ticker(store, clock, self._tick)
        self._feed = Feed(store)
        self._views: Views | None = None
        self._follower: Follower | None = None
        self._on_step_backs: list[Callable[[], None]] = []
        self._background: list[asyncio.Task[None]] = []
        self._outbox = Outbox(
            clock=clock,
            drivers=drivers,
            run_hook=run_hook,
            submit=self._submit_own,
            node=node,
            timing=self._rules.timing,
        )
        self._running: asyncio.Task[None] | None = None
        self._takes_work = takes_work
        self._transactions: dict[asyncio.Task[Receipt], asyncio.Future[Receipt]] = {}
        """The transactions under way, and the futures of their callers, who may have gone away."""
        self._listens = False
        self._observers: list[Observer] = []

    async def start(self) -> None:
        self._takes_work = True
        self._outbox.open()
        self._running = self._ticker.start()
        self._listen()

    async def show(self) -> Views:
        """Load all documents for an endpoint, and keep them up to date. Raises StoreDown."""
        views = self._views = Views(self._store, self._submit_own)
        self._listen()
        notes = SeenNotes(self._store, self._clock, views, self._rules.timing)
        if self._store.is_shared:
            follower = Follower(self._store, self._feed, views, self._on_step_back)
            await follower.begin()
            await views.load()
            self._follower = follower
            self._background.append(follower.start())
            self.observe(lambda receipt, _by, _why, _took_s: follower.expect(receipt))
            self.on_step_back(notes.repeat)
        else:
            await views.load()
        self._background.append(notes.start())
        return views

    @property
    def views(self) -> Views:
        assert self._views is not None, "nothing is shown yet: call `show`"
        return self._views

    async def stop(self) -> None:
        """Stop the engine. Work under way is given back, for the next start or another node."""
        self._takes_work = False
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._background = []
        if self._views is not None:
            await self._views.close()
        await self._outbox.stop()
        # A commit under way may still hand work to this node.
        await asyncio.gather(*self._transactions, return_exceptions=True)
        await self._outbox.give_back()

    def observe(self, observer: Observer) -> None:
        self._observers.append(observer)

    def on_step_back(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the store has lost a part of its past."""
        self._on_step_backs.append(listener)

    @property
    def step_backs(self) -> int:
        """How often the store has lost a part of its past since the start."""
        return 0 if self._follower is None else self._follower.step_backs

    @property
    def views_lag_s(self) -> float | None:
        """How many seconds ago the views were known to show everything that is stored. It is None
        if no other node writes to the store, because then the views always show everything.
        """
        return None if self._follower is None else self._follower.lag_s

    def documents_age_s(self) -> float:
        """Return how many seconds ago this node last read all changes of other nodes. It is 0 if no
        other node writes to the store.
        """
        return 0.0 if self._follower is None else self._follower.age_s

    async def check_past(self) -> None:
        """Check whether the store has stepped back, and follow it. Raises StoreDown."""
        if self._follower is not None:
            await self._follower.check()

    async def _follow(self, scope_id: ScopeId) -> None:
        """Return when the views show the scope as it is stored. Raises StoreDown. The follower must
        never call this, because it would wait for itself.
        """
        assert self._follower is not None
        await self.views.refresh(scope_id)
        await self._follower.check(at_once=True)

    def new_id(self) -> EventId:
        return self._ids()

    async def declare(
        self, resources: Iterable[Resource], *, by: Actor, why: str = ""
    ) -> tuple[Scope, ...]:
        """Add resources, all or none, and return their scopes. Raises Refused for a broken rule."""
        scopes = tuple(scope for resource in resources for scope in expand(resource))
        await self.create(scopes, by=by, why=why)
        return scopes

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        """Add scopes as they are, all or none. Raises Refused if an id or an address is in use."""
        limits.refuse_text("reason", why + by.name)
        await self._store.create(scopes, by=by, why=why, fences=fences)

    async def submit(
        self,
        scope_id: ScopeId,
        command: Command,
        *,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
        precondition: Precondition | None = None,
    ) -> Receipt:
        """Carry out and store the command. Raises Refused, FenceBroken or StoreDown.

        `precondition` is called with the scope, within the transaction. If it raises an exception,
        the exception is passed on and nothing is stored.
        """
        limits.refuse_text("reason", why + by.name)
        try:
            try:
                return await self._transact(
                    scope_id, command, by=by, why=why, fences=fences, precondition=precondition
                )
            except OtherPast:
                await self._follow(scope_id)
                return await self._transact(
                    scope_id, command, by=by, why=why, fences=fences, precondition=precondition
                )
        except Refused as refused:
            if refused.code is Code.UNKNOWN_EVENT and isinstance(
                command, Approve | Cancel | Postpone
            ):
                await self._refuse_if_over(scope_id, command.event_id)
            raise

    async def approve(
        self, event_id: EventId, *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> Receipt:
        """Approve an event by its id alone. Raises Refused, FenceBroken or StoreDown."""
        scope_id, _ = await self._store.find_event(event_id)
        command = Approve(event_id=event_id, by=by)
        return await self.submit(scope_id, command, by=by, why=why, fences=fences)

    def changes(self, after: Position = START) -> AsyncGenerator[Entry, None]:
        return self._feed.changes(after)

    async def _refuse_if_over(self, scope_id: ScopeId, event_id: EventId) -> None:
        """Raise Refused if the event is over. The store knows it even if the scope forgot it."""
        found, event = await self._store.find_event(event_id)
        if found == scope_id:
            raise Refused(
                Code.EVENT_FINISHED,
                f"event {event_id} is over ({event.phase}); there is nothing left to decide",
            )

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            self._store.listen(self._on_signal)

    def _on_signal(self, signal: Signal) -> None:
        if self._running is not None:
            self._ticker.on_signal(signal)
        self._feed.on_signal(signal)
        if self._views is not None:
            self._views.on_signal(signal)

    def _on_step_back(self) -> None:
        self._era += 1
        # Take another name, so that work that was handed to the old name is not begun again.
        self._node = NodeId(f"{self._name}.{self._era}")
        self._outbox.change_node(self._node)
        for listener in self._on_step_backs:
            listener()

    async def _tick(self, scope_id: ScopeId) -> Receipt:
        return await self._transact(scope_id, Tick(), by=ENGINE, skip_busy=True)

    async def _submit_own(self, scope_id: ScopeId, command: Command) -> Receipt:
        return await self._transact(scope_id, command, by=ENGINE)

    async def _transact(
        self,
        scope_id: ScopeId,
        command: Command,
        *,
        by: Actor,
        why: str = "",
        skip_busy: bool = False,
        fences: Sequence[Fence] = (),
        precondition: Precondition | None = None,
    ) -> Receipt:
        """Run the transaction to its end, even if the caller is cancelled, or waits no longer."""
        loop = asyncio.get_running_loop()
        limit_s = call_limit_s.get()
        transaction = loop.create_task(
            self._commit(
                scope_id,
                _guarded(self._step(command), precondition),
                by=by,
                why=why,
                counting=limits.is_counted(command),
                skip_busy=skip_busy,
                fences=fences,
            ),
            context=None if limit_s is None else _without_limit(),
        )
        # This does the same as `asyncio.shield`, with two callbacks less.
        outcome: asyncio.Future[Receipt] = loop.create_future()
        self._transactions[transaction] = outcome
        transaction.add_done_callback(self._end_transaction)
        return await within(limit_s, outcome)

    def _end_transaction(self, transaction: asyncio.Task[Receipt]) -> None:
        outcome = self._transactions.pop(transaction)
        if transaction.cancelled():
            outcome.cancel()
            return
        # Always retrieve the exception, because a caller that has gone away does not.
        error = transaction.exception()
        if outcome.done():
            return
        if error is None:
            outcome.set_result(transaction.result())
        else:
            outcome.set_exception(error)

    async def _commit(
        self,
        scope_id: ScopeId,
        step: Step,
        *,
        by: Actor,
        why: str,
        counting: bool,
        skip_busy: bool,
        fences: Sequence[Fence],
    ) -> Receipt:
        clock_s = asyncio.get_running_loop().time
        began_s = clock_s()
        began_ms = self._clock.steady_ms()
        era = self._era
        receipt = await self._store.transact(
            scope_id,
            step,
            by=by,
            why=why,
            counting=counting,
            skip_busy=skip_busy,
            fences=fences,
        )
        # If the store has stepped back meanwhile, this receipt may be of the lost past.
        if era == self._era:
            self._outbox.take(receipt, began_ms)
        for observer in self._observers:
            observer(receipt, by, why, clock_s() - began_s)
        return receipt

    def _step(self, command: Command) -> Step:
        rules = self._rules

        def step(scope: Scope, moment: Moment) -> Change:
            # Evaluated when the step runs, because a node that is stopping takes no more work.
            node = self._node if self._takes_work else None
            if self._follower is not None:
                self.views.refuse_other_past(scope)
            change = decide(scope, command, moment.now_ms, timing=rules.timing, node=node)
            if limits.is_counted(command):
                pending_max = rules.operations_pending_max
                limits.refuse_over_limit(
                    scope, change.scope, moment.pending_operations, pending_max
                )
            return change

        return step


def _without_limit() -> Context:
    """Return a context in which a transaction goes on although its caller waits no longer."""
    context = copy_context()
    context.run(call_limit_s.set, None)
    return context


def _guarded(step: Step, precondition: Precondition | None) -> Step:
    if precondition is None:
        return step

    def guarded(scope: Scope, moment: Moment) -> Change:
        precondition(scope)
        return step(scope, moment)

    return guarded
