"""This module creates, shows, pauses, resumes and cancels rollouts for whoever asks.

What is decided here is only noted in the rollout's record; `rollout_runner.py` acts on it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from copy import copy
from typing import Any, TypeVar

from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.limits import refuse_text
from fairwarning.core.model import Actor, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.checks import refuse_spec
from fairwarning.core.rollouts.model import (
    UNFINISHED,
    Rollout,
    RolloutPhase,
    RolloutSpec,
    rollout_id,
)
from fairwarning.core.rollouts.plan import Plan, Scopes, checked_steps, estimate, preview
from fairwarning.engine.protocols import Apart, Clock, RecordChanged, Store, StoreDown
from fairwarning.engine.rollout_records import RolloutRecords
from fairwarning.engine.rollout_runner import RolloutRunner
from fairwarning.engine.service import Engine

PAGE_SCOPES_MAX = 1_000
READ_ONE_BY_ONE_MAX = 50
SHORT_MAX = 100
"""Up to this product of scopes and calendar entries an estimate takes only a moment."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Rollouts:
    """The rollouts of a node. Everything raises StoreDown when the store cannot answer."""

    def __init__(
        self, engine: Engine, store: Store, clock: Clock, apart: Apart | None = None
    ) -> None:
        """`apart` does what may take seconds; without it, it is done here and now."""
        self._engine = engine
        self._store = store
        self._records = RolloutRecords(store)
        engine.on_step_back(self._records.forget)
        self._runner = RolloutRunner(engine, store, clock)
        self._running: asyncio.Task[None] | None = None
        self._apart = apart or _here

    def through(self, store: Store) -> "Rollouts":
        """The same rollouts, with another way to write what is asked of them."""
        other = copy(self)
        other._records = RolloutRecords(store)
        return other

    async def start(self) -> None:
        """Begin to carry rollouts on.

        It comes before the engine's own start, so that what became overdue while no node was up,
        and whose window is closed by now, is taken back before it can begin.
        """
        try:
            await self._runner.look()
        except StoreDown as outage:
            _log.warning("the store is down, rollouts wait: %s", outage)
        self._running = self._runner.start()

    async def stop(self) -> None:
        """Stop. Rollouts go on at the next start, or on another node."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    async def preview(self, spec: RolloutSpec) -> Plan:
        """What `create` would do, and when. Refuses what it would refuse."""
        refuse_spec(spec)
        scopes = await self._chosen(spec)
        now = await self._runner.now()
        return await self._apart(preview, spec, scopes, now, is_long=_is_long(spec, scopes))

    async def create(
        self, spec: RolloutSpec, *, by: Actor, why: str = "", seed: str | None = None
    ) -> Rollout:
        """Create a rollout. With a seed, `made_for` finds it for a day."""
        refuse_text("reason", why + by.name)
        refuse_spec(spec)
        scopes = await self._chosen(spec)
        while True:
            now = await self._runner.now()
            rollout = Rollout(
                id=rollout_id(now, self._engine.new_id()),
                spec=spec,
                created_ms=now,
                created_by=by,
                steps=await self._apart(
                    checked_steps, spec, scopes, now, is_long=_is_long(spec, scopes)
                ),
                seed=seed,
            )
            # Before it is kept: whoever hears that this failed has no rollout.
            estimated = await self._estimated(rollout, {each.id: each for each in scopes}, now)
            try:
                await self._records.keep(rollout, expected=0, by=by, why=why, action="created")
            except RecordChanged:
                continue  # The id is taken; another is drawn.
            self._runner.ring()
            return estimated

    async def made_for(self, seed: str) -> Rollout:
        """The rollout that was created with this seed. Refuses if there is none of the last day."""
        found = await self._records.find_seeded(seed, await self._runner.now())
        return await self.get(found)

    async def get(self, id: str) -> Rollout:
        """The rollout, with estimates in the steps that are still to come."""
        rollout = (await self._records.find(id)).rollout
        if rollout.phase is not RolloutPhase.RUNNING:
            return rollout
        left = {step.scope_id for step in rollout.steps if step.phase in UNFINISHED}
        present = await self._present(left)
        return await self._estimated(rollout, present, await self._runner.now())

    async def page(self, after: str = "", limit: int = 50) -> list[Rollout]:
        """Rollouts newest first, from the one after `after` on, without estimates."""
        return await self._records.page(after, limit)

    async def pause(self, id: str, *, by: Actor, why: str = "") -> Rollout:
        """Announce nothing more. What is announced goes on."""
        return await self._decide(id, _to(RolloutPhase.PAUSED), "paused", by, why)

    async def resume(self, id: str, *, by: Actor, why: str = "") -> Rollout:
        return await self._decide(id, _to(RolloutPhase.RUNNING), "resumed", by, why)

    async def cancel(self, id: str, *, by: Actor, why: str = "") -> Rollout:
        """Cancel what is announced; what has started goes on to its end."""
        return await self._decide(id, _cancelled(by, why), "cancelled", by, why)

    async def _decide(
        self, id: str, change: Callable[[Rollout], Rollout], action: str, by: Actor, why: str
    ) -> Rollout:
        refuse_text("reason", why + by.name)
        async with self._runner.turn:
            while True:
                kept = await self._records.find(id)
                _refuse_finished(kept.rollout)
                changed = change(kept.rollout)
                if changed == kept.rollout:
                    return changed
                try:
                    await self._records.keep(
                        changed, expected=kept.revision, by=by, why=why, action=action
                    )
                except RecordChanged:
                    continue
                self._runner.ring()
                return changed

    async def _estimated(self, rollout: Rollout, scopes: Scopes, now: Instant) -> Rollout:
        is_long = _is_long(rollout.spec, scopes)
        return await self._apart(estimate, rollout, scopes, now, is_long=is_long)

    async def _chosen(self, spec: RolloutSpec) -> tuple[Scope, ...]:
        """The scopes in the order that was asked for; of a whole fleet, those that
        have instances.
        """
        if not spec.scope_ids:
            return tuple([scope async for scope in self._fleet() if scope.roster.live])
        return tuple([await self._store.read(id) for id in dict.fromkeys(spec.scope_ids)])

    async def _present(self, scope_ids: Collection[ScopeId]) -> Scopes:
        """The scopes that still exist."""
        if len(scope_ids) > READ_ONE_BY_ONE_MAX:
            return {scope.id: scope async for scope in self._fleet() if scope.id in scope_ids}
        found: dict[ScopeId, Scope] = {}
        for scope_id in scope_ids:
            with suppress(Refused):
                found[scope_id] = await self._store.read(scope_id)
        return found

    async def _fleet(self) -> AsyncIterator[Scope]:
        after: ScopeId | None = None
        while page := await self._store.scopes(after=after, limit=PAGE_SCOPES_MAX):
            for scope in page:
                yield scope
            after = page[-1].id


async def _here(work: Callable[..., T], *given: Any, is_long: bool = False) -> T:
    return work(*given)


def _is_long(spec: RolloutSpec, scopes: Collection[object]) -> bool:
    """Each step of each scope looks for its place in the calendar."""
    return len(scopes) * (1 + len(spec.windows) + len(spec.blackouts)) > SHORT_MAX


def _to(phase: RolloutPhase) -> Callable[[Rollout], Rollout]:
    return lambda rollout: replace(rollout, phase=phase)


def _cancelled(by: Actor, why: str) -> Callable[[Rollout], Rollout]:
    outcome = f"cancelled by {by}" + (f": {why}" if why else "")
    return lambda rollout: replace(rollout, phase=RolloutPhase.CANCELLED, outcome=outcome)


def _refuse_finished(rollout: Rollout) -> None:
    if rollout.is_finished:
        raise Refused(
            Code.ROLLOUT_FINISHED,
            f"rollout {rollout.id} is over ({rollout.phase}); start another",
        )
