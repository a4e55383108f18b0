"""Changes to who is in a scope, one after the other.

A declaration is the whole roster, so a stale one would undo whatever came in between. Those
that come through here take turns, and each reads the scope anew while it holds it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from msgspec.structs import replace

from fairwarning.control.arm.call import Arm, ArmCall
from fairwarning.control.holding import held
from fairwarning.core.commands import AddInstances, Command, Declare
from fairwarning.core.model import Instance, InstanceName, Roster, Scope, ScopeId
from fairwarning.fleetfile.settling import placed

_turns: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
"""On one node they wait for each other; another node's makes them ask again."""


async def revise(
    arm: Arm, call: ArmCall, scope_id: ScopeId, change: Callable[[Roster], Roster]
) -> None:
    """Declares the scope anew, from what it is now. Raises Refused, or Problem if it is held."""
    async with _holding(arm, call, scope_id) as scope:
        roster = change(scope.roster)
        if roster != scope.roster:
            await _submit(arm, call, scope_id, Declare(roster=roster, before=scope.roster))


async def change_instance(
    arm: Arm,
    call: ArmCall,
    scope_id: ScopeId,
    name: InstanceName,
    change: Callable[[Instance], Instance],
) -> None:
    """Nothing happens if it is gone."""

    def changed(roster: Roster) -> Roster:
        if not roster.has_live(name):
            return roster
        return _with(roster, change(roster.instances[name]))

    await revise(arm, call, scope_id, changed)


async def add_instance(arm: Arm, call: ArmCall, scope_id: ScopeId, instance: Instance) -> None:
    """In the update and fault domain where the fewest are. Raises Refused, or Problem."""
    async with _holding(arm, call, scope_id) as scope:
        roster = scope.roster
        known = {each.name: each for each in roster.live}
        domains = (roster.update_domains, roster.fault_domains)
        newcomer = placed([*roster.live, instance], known, domains)[-1]
        is_used = instance.name in roster.instances and instance.name not in known
        # The name of one that is gone can only be declared again.
        command: Command = (
            Declare(roster=_with(roster, newcomer), before=roster)
            if is_used
            else AddInstances(instances=(newcomer,))
        )
        await _submit(arm, call, scope_id, command)


@asynccontextmanager
async def _holding(arm: Arm, call: ArmCall, scope_id: ScopeId) -> AsyncIterator[Scope]:
    """The scope as it is now, and nobody else here changes its resource meanwhile."""
    resource = "/".join(scope_id.split("/")[:4])
    turn = _turns.setdefault((id(arm), resource), asyncio.Lock())
    async with turn, held(arm.control.store, resource, by=call.by):
        yield await arm.control.store.read(scope_id)


async def _submit(arm: Arm, call: ArmCall, scope_id: ScopeId, command: Command) -> None:
    await arm.control.engine.submit(scope_id, command, by=call.by, why=call.why)


def _with(roster: Roster, instance: Instance) -> Roster:
    return replace(roster, instances={**roster.instances, instance.name: instance})
