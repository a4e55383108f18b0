"""Carries a plan out, one transaction a scope, and then creates what is new."""

from fairwarning.core.commands import Declare
from fairwarning.core.model import Actor, Roster, Scope, ScopeId
from fairwarning.engine.ports import Store
from fairwarning.engine.service import Engine
from fairwarning.fleetfile.model import Plan
from fairwarning.fleetfile.plan import refuse_plan

PAGE_SCOPES_MAX = 500


async def current_scopes(store: Store) -> list[Scope]:
    """All there are, those without instances too: their ids are taken."""
    found: list[Scope] = []
    after: ScopeId | None = None
    while page := await store.scopes(after=after, limit=PAGE_SCOPES_MAX):
        found += page
        after = page[-1].id
    return found


async def apply(engine: Engine, plan: Plan, *, force: bool, by: Actor, why: str = "") -> None:
    """Raises Refused or StoreDown.

    What can be refused is refused before anything changes. If somebody else changes the fleet
    meanwhile, or the store fails, some scopes are done; planning and applying again completes it.
    """
    refuse_plan(plan, force=force)
    latest: dict[ScopeId, Roster] = {}
    for step in plan.declares:
        before = latest.get(step.scope_id, step.before.roster)
        command = Declare(roster=step.roster, force=force, before=before)
        receipt = await engine.submit(step.scope_id, command, by=by, why=why)
        latest[step.scope_id] = receipt.scope.roster
    if plan.creates:
        await engine.create(plan.creates, by=by, why=why)
