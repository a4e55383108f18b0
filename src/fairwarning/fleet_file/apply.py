"""This module carries out a plan. It changes each existing scope in one transaction, and then
creates the new scopes.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

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
    latest: dict[ScopeId, Roster] = {}
    begun: list[EventId] = []
    for step in chain.from_iterable(declares):
        before = latest.get(step.scope_id, step.before.roster)
        command = Declare(
            roster=step.roster,
            force=force,
            before=before,
            terminates={name: engine.new_id() for name in _left_out(before, step.roster)},
            without_notice=step.without_notice,
        )
        receipt = await engine.submit(step.scope_id, command, by=by, why=why)
        latest[step.scope_id] = receipt.scope.roster
        begun += [each.event_id for each in receipt.transitions if isinstance(each, Scheduled)]
    for scopes in creates:
        await engine.create(scopes, by=by, why=why)
    return tuple(begun)


def _left_out(before: Roster, wanted: Roster) -> list[InstanceName]:
    """Return the instances that a step leaves out. Whether one of them needs a Terminate event is
    decided later, in the transaction.
    """
    return [each.name for each in before.live if not wanted.has_live(each.name)]
