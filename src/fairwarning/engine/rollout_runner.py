"""The rollout runner asks `advance` what a rollout does next, stores that, and does it.

Theory of operation. The runner keeps no state of its own: each look begins with the record and the
scopes as they are stored, so after a restart, or on another node, a rollout continues where it was.
If no other node writes, a scope that was read is kept until it changes, because many may be under
way. If two
nodes change a record, the first one wins and the other reads it again. The runner sleeps until the
instant that `advance` returns, and a signal of a scope of a rollout wakes it. On a shared store a
signal can be lost, so there it also looks from time to time.
"""

import asyncio
import logging

from fairwarning.core.instants import Instant, later
from fairwarning.core.model import ENGINE, Actor, Event, EventId, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.advance import Advance, Announce, Withdraw, advance
from fairwarning.core.rollouts.concurrency import concerns
from fairwarning.core.rollouts.model import ACTIVE, Rollout
from fairwarning.engine.protocols import Alarm, Clock, RecordChanged, Signal, Store, StoreDown
from fairwarning.engine.rollout_records import Kept, RolloutRecords
from fairwarning.engine.service import Engine

RECHECK_MS = 5_000  # How late a step may be if a signal was lost.
OUTAGE_PAUSE_MS = 500  # Short enough to go on soon after an outage.
REFUSED_PAUSE_MS = 1_000  # What refuses a step, such as another event, lasts longer.
CROWD_SCOPES = 100
"""If more scopes are under way, a look takes long, and changes are gathered for the next one."""
CROWD_PAUSE_MS = 500  # So long a change waits then.
QUICK_STEPS_MAX = 1_000  # To decide about so many takes less than 20 ms.

_OUTSIDE = ScopeId("")
"""The scope id of signals that say that a rollout has changed, perhaps on another node."""
_log = logging.getLogger(__name__)


class RolloutRunner:
    def __init__(self, engine: Engine, store: Store, clock: Clock) -> None:
        self._engine = engine
        self._store = store
        self._clock = clock
        self._records = RolloutRecords(store)
        engine.on_step_back(self._on_step_back)
        self._watched: set[ScopeId] = set()
        self._known: dict[ScopeId, Scope] = {}
        """The watched scopes as they are stored. It is empty if other nodes may change them."""
        self._signals = 0
        """How many signals have come. A scope that was read while one came may be out of date."""
        self._is_crowded = False
        self._is_gathering = False
        """Whether a scope of a crowd has changed since the last look began."""
        self._alarm: Alarm | None = None
        self._listens = False
        self.turn = asyncio.Lock()
        """A lock for announcing, so that nothing is announced after a pause was answered.
        """

    def start(self) -> asyncio.Task[None]:
        if not self._listens:
            self._listens = True
            self._store.listen(self._on_signal)
        alarm = self._alarm = self._clock.alarm()
        task = asyncio.create_task(self._run(alarm), name="rollouts")
        task.add_done_callback(lambda _: self._rest(alarm))
        return task

    def ring(self) -> None:
        if self._alarm is not None:
            self._alarm.ring()

    async def now(self) -> Instant:
        """Return the time by the clock of the store, which also dates the events."""
        return (await self._store.due(1)).now_ms if self._store.is_shared else self._clock.now()

    async def look(self) -> Instant | None:
        """Advance all unfinished rollouts. Returns when to look again, or None."""
        self._watched = {_OUTSIDE}
        self._is_gathering = False
        wake: list[Instant] = []
        for listed in await self._records.unfinished(await self.now()):
            async with self.turn:
                try:
                    kept = await self._records.read(listed.rollout.id)
                    # It is None if the store has lost it in a step back since it was listed.
                    at = None if kept is None else await self._carry_on(kept)
                except (StoreDown, asyncio.CancelledError):
                    raise
                except Exception:
                    # An error in one rollout must not stop the others.
                    _log.exception("rollout %s stumbled and goes on", listed.rollout.id)
                    at = later(await self.now(), OUTAGE_PAUSE_MS)
            if at is not None:
                wake.append(at)
        self._is_crowded = len(self._watched) > CROWD_SCOPES
        for scope_id in self._known.keys() - self._watched:
            del self._known[scope_id]
        return min(wake, default=None)

    def _on_signal(self, signal: Signal) -> None:
        self._signals += 1
        if signal.scope_id in self._known:
            # Also if it is not watched just now, because a look is beginning.
            if signal.scope is None:
                del self._known[signal.scope_id]
            else:
                self._known[signal.scope_id] = signal.scope
        if signal.scope_id not in self._watched:
            return
        if not self._is_crowded or signal.scope_id == _OUTSIDE:
            self.ring()
        elif not self._is_gathering:
            self._is_gathering = True
            self.ring()

    def _on_step_back(self) -> None:
        self._known.clear()
        self._records.forget()
        self.ring()

    def _rest(self, alarm: Alarm) -> None:
        self._alarm = None
        alarm.close()

    async def _run(self, alarm: Alarm) -> None:
        while True:
            try:
                wake = await self.look()
                now = await self.now()
            except StoreDown as outage:
                _log.warning("the store is down, rollouts wait: %s", outage)
                await alarm.pause(OUTAGE_PAUSE_MS)
                continue
            except Exception:
                # The runner must go on after any error.
                _log.exception("the rollouts stumbled and go on")
                await alarm.pause(OUTAGE_PAUSE_MS)
                continue
            if not self._store.is_shared:
                await alarm.wait(wake)
                if self._is_gathering:
                    await alarm.wait(later(await self.now(), CROWD_PAUSE_MS))
                continue
            left_ms = RECHECK_MS if wake is None else min(max(wake - now, 0), RECHECK_MS)
            await alarm.pause(left_ms)
            if self._is_gathering:
                await alarm.pause(CROWD_PAUSE_MS)

    async def _carry_on(self, kept: Kept) -> Instant | None:
        while True:
            now = await self.now()
            opened = await self._records.with_open_parts(kept, now)
            rollout = opened.rollout
            scopes = await self._scopes(rollout, now)
            next = await _advance(rollout, scopes, now, await self._past(rollout, scopes))
            if next.rollout != kept.rollout:
                try:
                    kept = await self._keep(opened, next.rollout)
                except RecordChanged:
                    kept = await self._records.find(rollout.id)
                    continue
            elif not next.announce and not next.withdraw:
                return next.wake_ms
            if not await self._do(rollout, next):
                return later(now, REFUSED_PAUSE_MS)

    async def _keep(self, kept: Kept, rollout: Rollout) -> Kept:
        ends_now = rollout.phase is not kept.rollout.phase
        action = str(rollout.phase) if ends_now else None
        return await self._records.keep(
            rollout, expected=kept.revision, by=ENGINE, action=action, read=kept
        )

    async def _do(self, rollout: Rollout, next: Advance) -> bool:
        """Announce and withdraw what `next` says. Returns False if a command was refused."""
        by = Actor(kind="rollout", name=rollout.id)
        orders: tuple[Announce | Withdraw, ...] = next.withdraw + next.announce
        return all([await self._submit(each, by, _reason(rollout)) for each in orders])

    async def _submit(self, what: Announce | Withdraw, by: Actor, why: str) -> bool:
        try:
            await self._engine.submit(what.scope_id, what.command, by=by, why=why)
        except Refused as refused:
            if refused.code is Code.EVENT_ID_USED:
                return True  # Another node, or this one before a crash, has done it.
            _log.info("%s waits: %s", by, refused.message)
            return False
        return True

    async def _scopes(self, rollout: Rollout, now: Instant) -> dict[ScopeId, Scope | None]:
        wanted = concerns(rollout, now)
        # Watch them before they are read, so that no change is missed.
        self._watched.update(wanted)
        return {scope_id: await self._read(scope_id) for scope_id in wanted}

    async def _read(self, scope_id: ScopeId) -> Scope | None:
        known = self._known.get(scope_id)
        if known is not None:
            return known
        signals = self._signals
        try:
            scope = await self._store.read(scope_id)
        except Refused:
            return None
        if self._listens and not self._store.is_shared and self._signals == signals:
            self._known[scope_id] = scope
        return scope

    async def _past(
        self, rollout: Rollout, scopes: dict[ScopeId, Scope | None]
    ) -> dict[EventId, Event]:
        """Return the events of the active steps and their replacements, even finished ones."""
        past: dict[EventId, Event] = {}
        for step in rollout.steps:
            scope = scopes.get(step.scope_id)
            event_id = step.event_id if step.phase in ACTIVE else None
            while event_id is not None:
                event = scope.events.get(event_id) if scope else None
                if event is None:
                    event = await self._find(event_id)
                if event is None:
                    break
                past[event_id] = event
                event_id = event.replaced_by
        return past

    async def _find(self, event_id: EventId) -> Event | None:
        try:
            return (await self._store.find_event(event_id))[1]
        except Refused:
            return None


async def _advance(
    rollout: Rollout,
    scopes: dict[ScopeId, Scope | None],
    now: Instant,
    past: dict[EventId, Event],
) -> Advance:
    """Return what the rollout does next. If many scopes are under way, this takes so long that
    polls would wait for it, so it is done in a thread.
    """
    if len(rollout.steps) <= QUICK_STEPS_MAX:
        return advance(rollout, scopes, now, past=past)
    return await asyncio.to_thread(advance, rollout, scopes, now, past=past)


def _reason(rollout: Rollout) -> str:
    """Return why the rollout announces events: its name and its creator's reason."""
    return ": ".join(each for each in (rollout.spec.name, rollout.why) if each)
