"""Changes to who is in a scope, one after the other.

A declaration is the whole roster, so a stale one would undo whatever came in between. Those
that come through here take turns, and each reads the scope anew while it holds it.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from msgspec.structs import replace

from fairwarning.azure_api.operations import Operations
from fairwarning.azure_api.request import Arm, ArmCall
from fairwarning.azure_api.resource_store import Shelf
from fairwarning.core.commands import AddInstances, Command, Declare
from fairwarning.core.model import Instance, InstanceName, Roster, Scope, ScopeId, ScopeKind
from fairwarning.core.placement import with_domains
from fairwarning.core.refusals import Code, Refused
from fairwarning.fleet_file.apply import current_scopes
from fairwarning.operator_api.declaration_rights import (
    is_armed_by_operator,
    owners_of_machines,
    refuse_machines_of_others,
)
from fairwarning.operator_api.locks import held

_turns: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
"""On one node they wait for each other; another node's makes them ask again."""


async def revise(
    arm: Arm, call: ArmCall, scope_id: ScopeId, change: Callable[[Roster], Roster]
) -> None:
    """Declares the scope anew, from what it is now. Raises Refused, or Problem if it is held."""
    async with _holding(arm, call, scope_id) as (own, scope):
        roster = change(scope.roster)
        if roster != scope.roster:
            await _submit(own, call, scope_id, Declare(roster=roster, before=scope.roster))


async def begin_anew(arm: Arm, call: ArmCall, scope_id: ScopeId, roster: Roster) -> None:
    """Uses the scope of a resource that was deleted for a new one of the same name.

    It has the driver that the deleted one had: no word of ARM changes what a driver acts on.
    """
    async with _holding(arm, call, scope_id) as (own, scope):
        if scope.roster.live:
            raise Refused(
                Code.SCOPE_EXISTS,
                f"{scope_id} was created by somebody else meanwhile; look at it, then ask again",
            )
        before = scope.roster
        handles = {each.name: each.handle for each in before.instances.values()}
        wanted = replace(
            roster,
            driver=before.driver,
            driver_settings=before.driver_settings,
            instances={
                each.name: replace(each, handle=handles.get(each.name, ""))
                for each in roster.instances.values()
            },
        )
        if wanted.kind is not ScopeKind.SCALE_SET:
            await refuse_others(own, call, scope_id, wanted, wanted.live)
        await _submit(own, call, scope_id, Declare(roster=wanted, before=before))


async def mark_removed(arm: Arm, call: ArmCall, scope_id: ScopeId) -> None:
    """Its name may be given to a new one when nobody is in it any more."""
    await revise(arm, call, scope_id, lambda now: replace(now, is_removed=True))


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
    async with _holding(arm, call, scope_id) as (own, scope):
        roster = scope.roster
        known = {each.name: each for each in roster.live}
        domains = (roster.update_domains, roster.fault_domains)
        newcomer = with_domains([*roster.live, instance], known, domains)[-1]
        is_used = instance.name in roster.instances and instance.name not in known
        if is_used:
            newcomer = replace(newcomer, handle=roster.instances[instance.name].handle)
        await refuse_others(own, call, scope_id, roster, [newcomer])
        # The name of one that is gone can only be declared again.
        command: Command = (
            Declare(roster=replace(_with(roster, newcomer), is_removed=False), before=roster)
            if is_used
            else AddInstances(instances=(newcomer,))
        )
        await _submit(own, call, scope_id, command)


@asynccontextmanager
async def _holding(arm: Arm, call: ArmCall, scope_id: ScopeId) -> AsyncIterator[tuple[Arm, Scope]]:
    """The scope as it is now, and nobody else here changes its resource meanwhile."""
    resource = "/".join(scope_id.split("/")[:4])
    turn = _turns.setdefault((id(arm.control.leases), resource), asyncio.Lock())
    async with turn, locked(arm, call, resource) as own:
        yield own, await own.control.store.read(scope_id)


async def refuse_others(
    arm: Arm, call: ArmCall, scope_id: ScopeId, roster: Roster, newcomers: Iterable[Instance]
) -> None:
    """Raises Problem if an operator points a driver at the machine of another scope."""
    if is_armed_by_operator(call.caller, roster):
        current = await current_scopes(arm.control.store)
        refuse_machines_of_others(scope_id, roster, newcomers, owners_of_machines(current))


async def _submit(arm: Arm, call: ArmCall, scope_id: ScopeId, command: Command) -> None:
    await arm.control.engine.submit(scope_id, command, by=call.by, why=call.why)


def _with(roster: Roster, instance: Instance) -> Roster:
    return replace(roster, instances={**roster.instances, instance.name: instance})


# Locks on a resource of ARM: whoever has one changes nothing once it is lost.
@asynccontextmanager
async def locked(arm: Arm, call: ArmCall, what: str) -> AsyncIterator[Arm]:
    """Work with the one that this yields. Raises Problem if somebody else has the lock."""
    async with held(arm.control, what, by=call.by) as control:
        shelf, operations = Shelf(control.store), Operations(control.store, control.clock)
        yield dataclasses.replace(arm, control=control, shelf=shelf, operations=operations)
