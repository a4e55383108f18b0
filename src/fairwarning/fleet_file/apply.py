"""This module carries out a plan. It changes each existing scope in one transaction, and then
creates the new scopes.
"""

from collections.abc import Iterable, Sequence

from fairwarning.core.commands import Declare
from fairwarning.core.model import Actor, EventId, InstanceName, Roster, Scope, ScopeId
from fairwarning.core.transitions import Scheduled
from fairwarning.engine.protocols import Store
from fairwarning.engine.service import Engine
from fairwarning.fleet_file.model import Plan, Step
from fairwarning.fleet_file.plan import refuse_plan

PAGE_SCOPES_MAX = 500  # Reading so few at once does not hold up polls.


async def current_scopes(store: Store) -> list[Scope]:
    """Return all scopes of the store. Scopes without instances are included, because their ids are
    in use.
    """
    found: list[Scope] = []
    after: ScopeId | None = None
    while page := await store.scopes(after=after, limit=PAGE_SCOPES_MAX):
        found += page
        after = page[-1].id
    return found


async def apply(
    engine: Engine, plan: Plan, *, force: bool, by: Actor, why: str = ""
) -> tuple[EventId, ...]:
    """Carry out the plan. Returns the Terminate events that it has announced. Raises Refused or
    StoreDown.

    The plan is checked before anything changes. But if somebody else changes the fleet meanwhile,
    or the store fails, only some scopes are changed. To complete it, plan and apply again.
    """
    refuse_plan(plan, force=force)
    creates = [plan.creates] if plan.creates else []
    return await carry_out(engine, [plan.declares], creates, force=force, by=by, why=why)


async def carry_out(
    engine: Engine,
    declares: Iterable[Sequence[Step]],
    creates: Iterable[Sequence[Scope]],
    *,
    force: bool,
    by: Actor,
    why: str,
) -> tuple[EventId, ...]:
    """Carry out a plan that was checked already, in batches. Otherwise it is like `apply`."""
    execution = Execution(engine, force=force, by=by, why=why)
    for steps in declares:
        await execution.declare(steps)
    for scopes in creates:
        await execution.create(scopes)
    return tuple(execution.terminates)


class Execution:
    """Carries out a plan that was checked already, a batch at a time."""

    def __init__(self, engine: Engine, *, force: bool, by: Actor, why: str) -> None:
        self._engine = engine
        self._force = force
        self._by = by
        self._why = why
        self._latest: dict[ScopeId, Roster] = {}
        """The rosters of the scopes that have a further step."""
        self.done = 0
        """How many steps are done. A new scope counts as a step."""
        self.terminates: list[EventId] = []
        """The Terminate events that were announced."""

    async def declare(self, steps: Iterable[Step]) -> None:
        """Change existing scopes, each in a transaction. Raises Refused or StoreDown."""
        for step in steps:
            before = self._latest.pop(step.scope_id, step.before.roster)
            leave = _left_out(before, step.roster)
            command = Declare(
                roster=step.roster,
                force=self._force,
                before=before,
                terminates={name: self._engine.new_id() for name in leave},
                without_notice=step.without_notice,
            )
            receipt = await self._engine.submit(step.scope_id, command, by=self._by, why=self._why)
            if step.is_first:
                self._latest[step.scope_id] = receipt.scope.roster
            begun = (each for each in receipt.transitions if isinstance(each, Scheduled))
            self.terminates += [each.event_id for each in begun]
            self.done += 1

    async def create(self, scopes: Sequence[Scope]) -> None:
        """Create new scopes, all of the batch or none. Raises Refused or StoreDown."""
        await self._engine.create(scopes, by=self._by, why=self._why)
        self.done += len(scopes)


def _left_out(before: Roster, wanted: Roster) -> list[InstanceName]:
    """Return the instances that a step leaves out. Whether one of them needs a Terminate event is
    decided later, in the transaction.
    """
    return [each.name for each in before.live if not wanted.has_live(each.name)]
