"""This module creates, shows, pauses, resumes and cancels rollouts.

It only writes the record of a rollout; `rollout_runner.py` acts on it.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from copy import copy
from typing import Any, TypeVar

from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.limits import refuse_text
from fairwarning.core.model import Actor, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts import parts
from fairwarning.core.rollouts.checks import refuse_many_scopes, refuse_misfit, refuse_spec
from fairwarning.core.rollouts.model import (
    UNFINISHED,
    Rest,
    Rollout,
    RolloutPhase,
    RolloutSpec,
    RolloutStep,
    rollout_id,
)
from fairwarning.core.rollouts.plan import (
    Plan,
    Scopes,
    checked_steps,
    estimate,
    short_preview,
    steps_of,
)
from fairwarning.engine.protocols import Apart, Clock, RecordChanged, Store, StoreDown
from fairwarning.engine.rollout_records import RolloutRecords, encode_steps
from fairwarning.engine.rollout_runner import RolloutRunner
from fairwarning.engine.service import Engine

PAGE_SCOPES_MAX = 1_000  # Few questions to the store, even for a large fleet.
READ_ONE_BY_ONE_MAX = 50  # For more, reading the whole fleet in pages is faster.
SHORT_MAX = 100
"""An estimate is quick if the scopes times the calendar entries are at most this many."""

SLICE_SCOPES = 20  # What is done with so many scopes takes a few milliseconds.
_CURSOR = re.compile(r"([0-9]{1,7})\.([0-9]{1,7})", re.ASCII)
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Rollouts:
    """The rollouts of a node. All methods raise StoreDown if the store cannot answer."""

    def __init__(
        self, engine: Engine, store: Store, clock: Clock, apart: Apart | None = None
    ) -> None:
        """`apart` runs computations that take seconds. Without it they run in the event loop."""
        self._engine = engine
        self._store = store
        self._records = RolloutRecords(store)
        engine.on_step_back(self._records.forget)
        self._runner = RolloutRunner(engine, store, clock)
        self._running: asyncio.Task[None] | None = None
        self._apart = apart or _here

    def through(self, store: Store) -> "Rollouts":
        """Return the same rollouts with another store, through which their records are written."""
        other = copy(self)
        other._records = RolloutRecords(store)
        return other

    async def start(self) -> None:
        """Begin to run rollouts. Call this before the engine starts. Then an event that became due
        while no node was running, and whose window has closed, is withdrawn before it can start.
        """
        try:
            await self._runner.look()
        except StoreDown as outage:
            _log.warning("the store is down, rollouts wait: %s", outage)
        self._running = self._runner.start()

    async def stop(self) -> None:
        """Stop running rollouts. They continue at the next start, or on another node."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    async def preview(self, spec: RolloutSpec) -> Plan:
        """Return what `create` would do, and when. Raises Refused as `create` would."""
        refuse_spec(spec)
        scopes = await self._chosen(spec)
        now, most = await self._runner.now(), parts.WHOLE_STEPS_MAX
        is_long = _is_long(spec, scopes)
        return await self._apart(short_preview, spec, scopes, now, most, is_long=is_long)

    async def create(
        self, spec: RolloutSpec, *, by: Actor, why: str = "", seed: str | None = None
    ) -> Rollout:
        """Create a rollout, which `made_for` finds by its seed for a day. Raises Refused."""
        refuse_text("reason", why + by.name)
        refuse_spec(spec)
        scopes = await self._few_chosen(spec)
        if scopes is None:
            return await self._create_large(spec, by=by, why=why, seed=seed)
        while True:
            now = await self._runner.now()
            rollout = Rollout(
                id=rollout_id(now, self._engine.new_id()),
                spec=spec,
                created_ms=now,
                created_by=by,
                why=why,
                steps=await self._apart(
                    checked_steps, spec, scopes, now, is_long=_is_long(spec, scopes)
                ),
                seed=seed,
            )
            # Before the rollout is stored, so that there is no rollout if this fails.
            estimated = await self._estimated(rollout, {each.id: each for each in scopes}, now)
            try:
                await self._records.keep(rollout, expected=0, by=by, why=why, action="created")
            except RecordChanged:
                continue  # The id is in use; try another.
            self._runner.ring()
            return estimated

    async def _create_large(
        self, spec: RolloutSpec, *, by: Actor, why: str, seed: str | None
    ) -> Rollout:
        """Create a rollout that is stored in parts. It gets no estimates."""
        now = await self._runner.now()
        divider = parts.Divider()
        bodies: list[str] = []
        fits: set[int] = set()
        async for scope in self._each_chosen(spec):
            refuse_misfit(spec, (scope,), now, fits)
            if part := divider.add(steps_of(scope)):
                bodies.append(encode_steps(part))
        if part := divider.end():
            bodies.append(encode_steps(part))
        refuse_many_scopes(divider.scopes)
        while True:
            id = rollout_id(now, self._engine.new_id())
            rollout = Rollout(
                id=id,
                spec=spec,
                created_ms=now,
                created_by=by,
                why=why,
                steps=(),
                seed=seed,
                rest=Rest(parts=len(bodies), waiting=divider.steps),
            )
            try:
                await self._records.add_parts(id, bodies, by=by)
                await self._records.keep(rollout, expected=0, by=by, why=why, action="created")
            except RecordChanged:
                continue  # The id is in use; try another.
            self._runner.ring()
            return rollout

    async def steps(self, id: str, after: str, limit: int) -> tuple[list[RolloutStep], str | None]:
        """Return a page of the steps of a rollout, in order, and the cursor of the next page.

        `after` is such a cursor, or empty. Raises Refused if it is not a cursor.
        """
        rollout = (await self._records.find(id)).rollout
        part, skip = _position(after)
        if rollout.rest is None:
            found = list(rollout.steps[skip : skip + limit])
            end = skip + limit
            return found, f"0.{end}" if end < len(rollout.steps) else None
        found, number = [], part
        async for number, steps in self._records.steps(rollout, part, skip + limit):
            for at, step in enumerate(steps):
                if (number, at) < (part, skip):
                    continue
                if len(found) == limit:
                    return found, f"{number}.{at}"
                found.append(parts.shown_step(rollout, step))
        is_last = not found or number + 1 >= rollout.rest.parts
        return found, None if is_last else f"{number + 1}.0"

    async def made_for(self, seed: str) -> Rollout:
        """Return the rollout of the last day with this seed. Raises Refused if there is none."""
        found = await self._records.find_seeded(seed, await self._runner.now())
        return await self.get(found)

    async def get(self, id: str) -> Rollout:
        """Return the rollout with estimates for unfinished steps. Raises Refused if unknown.

        A large rollout has only the steps of its open parts, without estimates.
        """
        rollout = (await self._records.find(id)).rollout
        if rollout.phase is not RolloutPhase.RUNNING or rollout.rest is not None:
            return rollout
        left = {step.scope_id for step in rollout.steps if step.phase in UNFINISHED}
        present = await self._present(left)
        return await self._estimated(rollout, present, await self._runner.now())

    async def page(self, after: str = "", limit: int = 50) -> list[Rollout]:
        """Return rollouts after `after`, newest first, without estimates."""
        return await self._records.page(after, limit)

    async def pause(self, id: str, *, by: Actor, why: str = "") -> Rollout:
        """Pause the rollout. Nothing more is announced, but events that are announced go on."""
        return await self._decide(id, _to(RolloutPhase.PAUSED), "paused", by, why)

    async def resume(self, id: str, *, by: Actor, why: str = "") -> Rollout:
        return await self._decide(id, _to(RolloutPhase.RUNNING), "resumed", by, why)

    async def cancel(self, id: str, *, by: Actor, why: str = "") -> Rollout:
        """Cancel the rollout and its announced events. Events that have started go on."""
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
                        changed, expected=kept.revision, by=by, why=why, action=action, read=kept
                    )
                except RecordChanged:
                    continue
                self._runner.ring()
                return changed

    async def _estimated(self, rollout: Rollout, scopes: Scopes, now: Instant) -> Rollout:
        is_long = _is_long(rollout.spec, scopes)
        return await self._apart(estimate, rollout, scopes, now, is_long=is_long)

    async def _chosen(self, spec: RolloutSpec) -> tuple[Scope, ...]:
        """Return the scopes of the rollout in order, or all with instances if it names none."""
        return tuple([scope async for scope in self._each_chosen(spec)])

    async def _few_chosen(self, spec: RolloutSpec) -> tuple[Scope, ...] | None:
        """Return the scopes of the rollout, or None if it is too large for one record."""
        found: list[Scope] = []
        steps = instances = 0
        async for scope in self._each_chosen(spec):
            found.append(scope)
            live = scope.roster.live
            steps += len({each.update_domain for each in live})
            instances += len(live)
            if steps > parts.WHOLE_STEPS_MAX or instances > parts.WHOLE_INSTANCES_MAX:
                return None
        return tuple(found)

    async def _each_chosen(self, spec: RolloutSpec) -> AsyncIterator[Scope]:
        if not spec.scope_ids:
            async for scope in self._fleet():
                if scope.roster.live:
                    yield scope
            return
        for id in dict.fromkeys(spec.scope_ids):
            yield await self._store.read(id)

    async def _present(self, scope_ids: Collection[ScopeId]) -> Scopes:
        """Return those of the scopes that exist."""
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
            for number, scope in enumerate(page):
                yield scope
                if number % SLICE_SCOPES == 0:
                    # Polls must not wait for what is done with the whole fleet.
                    await asyncio.sleep(0)
            after = page[-1].id


def _position(cursor: str) -> tuple[int, int]:
    """Return the part and the step within it. Raises Refused if the text is not a cursor."""
    found = _CURSOR.fullmatch(cursor or "0.0")
    if found is None:
        raise Refused(Code.ROLLOUT_INVALID, "`after` is no cursor; take `next` of a page")
    return int(found[1]), int(found[2])


async def _here(work: Callable[..., T], *given: Any, is_long: bool = False) -> T:
    return work(*given)


def _is_long(spec: RolloutSpec, scopes: Collection[object]) -> bool:
    """Return whether an estimate may take long. Each step of each scope searches the calendar."""
    return len(scopes) * (1 + len(spec.windows) + len(spec.blackouts)) > SHORT_MAX


def _to(phase: RolloutPhase) -> Callable[[Rollout], Rollout]:
    return lambda rollout: replace(rollout, phase=phase)


def _cancelled(by: Actor, why: str) -> Callable[[Rollout], Rollout]:
    outcome = f"cancelled by {by}" + (f": {why}" if why else "")
    return lambda rollout: replace(rollout, phase=RolloutPhase.CANCELLED, outcome=outcome)


def _refuse_finished(rollout: Rollout) -> None:
    if rollout.is_finished:
        raise Refused(
            Code.ROLLOUT_FINISHED, f"rollout {rollout.id} is over ({rollout.phase}); start another"
        )
