"""Changes the instances of a scope, one change after the other.

A declaration contains the whole roster, so an outdated one would undo newer changes. Therefore each
change locks the resource, and reads the scope again while it holds the lock.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from msgspec.structs import replace

from fairwarning.azure_api.fleet_view import scopes_of_resource
from fairwarning.azure_api.operations import Operations
from fairwarning.azure_api.request import Arm, ArmCall
from fairwarning.azure_api.resource_store import ResourceStore
from fairwarning.core.commands import AddInstances, Command, Declare
from fairwarning.core.model import Instance, InstanceName, Roster, Scope, ScopeId, ScopeKind
from fairwarning.core.placement import with_domains
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import Place
from fairwarning.fleet_file.apply import current_scopes
from fairwarning.operator_api.declaration_rights import (
    needs_ownership_check,
    owners_of_machines,
    refuse_machines_of_others,
)
from fairwarning.operator_api.locks import held

_locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
"""The locks with which changes on one node wait for each other."""


async def update_roster(
    arm: Arm, call: ArmCall, scope_id: ScopeId, change: Callable[[Roster], Roster]
) -> None:
    """Declares the scope again with the roster that `change` returns.

    Raises Refused, or Problem if another node has locked the resource.
    """
    async with _locked_scope(arm, call, scope_id) as (own, scope):
        roster = change(scope.roster)
        if roster != scope.roster:
            await _submit(own, call, scope_id, Declare(roster=roster, before=scope.roster))


def place_of(call: ArmCall, location: str) -> Place:
    """Returns the place of a resource that is declared through ARM."""
    path = call.path
    return Place(
        subscription=path.subscription,
        resource_group=path.group,
        location=location,
        origin="arm",
    )


async def create_scope(arm: Arm, call: ArmCall, scope: Scope) -> None:
    """Creates the only scope of a new resource.

    The scope of a deleted resource stays, so a new resource of the same name uses it again.
    """
    kind, path = scope.roster.kind, call.path
    left = await scopes_of_resource(arm, kind, path.subscription, path.group, path.name)
    if left:
        await reuse_scope(arm, call, left[0].id, scope.roster)
    else:
        await arm.control.engine.create([scope], by=call.by, why=call.why)


async def reuse_scope(arm: Arm, call: ArmCall, scope_id: ScopeId, roster: Roster) -> None:
    """Uses the scope of a deleted resource for a new resource of the same name.

    The scope keeps its driver and hooks, because ARM never changes what acts on instances. Raises
    Refused if the scope has instances, or Problem if another node has locked the resource.
    """
    async with _locked_scope(arm, call, scope_id) as (own, scope):
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
            hooks=before.hooks,
            instances={
                each.name: replace(each, handle=handles.get(each.name, ""))
                for each in roster.instances.values()
            },
        )
        if wanted.kind is not ScopeKind.SCALE_SET:
            await refuse_others(own, call, scope_id, wanted, wanted.live)
        await _submit(own, call, scope_id, Declare(roster=wanted, before=before))


async def mark_removed(arm: Arm, call: ArmCall, scope_id: ScopeId) -> None:
    """Marks the scope as removed. Once it is empty, a new resource can have the same name."""
    await update_roster(arm, call, scope_id, lambda now: replace(now, is_removed=True))


async def change_instance(
    arm: Arm,
    call: ArmCall,
    scope_id: ScopeId,
    name: InstanceName,
    change: Callable[[Instance], Instance],
) -> None:
    """Replaces one instance with the result of `change`. Does nothing if the instance is gone."""

    def changed(roster: Roster) -> Roster:
        if not roster.has_live(name):
            return roster
        return _with_instance(roster, change(roster.instances[name]))

    await update_roster(arm, call, scope_id, changed)


async def add_instance(arm: Arm, call: ArmCall, scope_id: ScopeId, instance: Instance) -> None:
    """Adds an instance to the update and fault domain with the fewest instances.

    Raises Refused or Problem.
    """
    async with _locked_scope(arm, call, scope_id) as (own, scope):
        roster = scope.roster
        known = {each.name: each for each in roster.live}
        domains = (roster.update_domains, roster.fault_domains)
        newcomer = with_domains([*roster.live, instance], known, domains)[-1]
        is_used = instance.name in roster.instances and instance.name not in known
        if is_used:
            newcomer = replace(newcomer, handle=roster.instances[instance.name].handle)
        await refuse_others(own, call, scope_id, roster, [newcomer])
        # AddInstances refuses the name of a deleted instance; only a declaration can reuse it.
        command: Command = (
            Declare(
                roster=replace(_with_instance(roster, newcomer), is_removed=False), before=roster
            )
            if is_used
            else AddInstances(instances=(newcomer,))
        )
        await _submit(own, call, scope_id, command)


@asynccontextmanager
async def _locked_scope(
    arm: Arm, call: ArmCall, scope_id: ScopeId
) -> AsyncIterator[tuple[Arm, Scope]]:
    """Locks the scope's resource. Yields an Arm for writing under the lock, and the current scope.

    Requests on one node wait for each other. Raises Problem if another node has the lock.
    """
    resource = "/".join(scope_id.split("/")[:4])
    async with locked_in_turn(arm, call, resource) as own:
        yield own, await own.control.store.read(scope_id)


async def refuse_others(
    arm: Arm, call: ArmCall, scope_id: ScopeId, roster: Roster, newcomers: Iterable[Instance]
) -> None:
    """Raises Problem if the driver would act on a machine that belongs to another scope.

    This is checked only if the caller is below admin and the roster has a real driver.
    """
    if needs_ownership_check(call.caller, roster):
        current = await current_scopes(arm.control.store)
        refuse_machines_of_others(scope_id, roster, newcomers, owners_of_machines(current))


async def _submit(arm: Arm, call: ArmCall, scope_id: ScopeId, command: Command) -> None:
    await arm.control.engine.submit(scope_id, command, by=call.by, why=call.why)


def _with_instance(roster: Roster, instance: Instance) -> Roster:
    return replace(roster, instances={**roster.instances, instance.name: instance})


@asynccontextmanager
async def locked_in_turn(arm: Arm, call: ArmCall, what: str) -> AsyncIterator[Arm]:
    """Takes the lock `what` as `locked` does, but requests on one node wait for each other."""
    lock = _locks.setdefault((id(arm.control.leases), what), asyncio.Lock())
    async with lock, locked(arm, call, what) as own:
        yield own


@asynccontextmanager
async def locked(arm: Arm, call: ArmCall, what: str) -> AsyncIterator[Arm]:
    """Takes the lock `what` and yields an Arm whose writes fail once the lock is lost.

    Raises Problem if somebody else has the lock.
    """
    async with held(arm.control, what, by=call.by) as control:
        resources, operations = (
            ResourceStore(control.store),
            Operations(control.store, control.clock),
        )
        yield dataclasses.replace(arm, control=control, resources=resources, operations=operations)
