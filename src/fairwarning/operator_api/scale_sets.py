"""Changes a whole scale set: resize, replace, operate, upgrade; used by all APIs.

How it works. A scale set is one scope for each placement group, and each scope is a
transaction of its own. So a change first locks the set and reads all its scopes. Then it tries the
commands on these scopes, and starts only if the rules refuse none of them. An event, a fleet file
or an outage can still stop it between two scopes. Each scope is then changed fully or not at all,
and the caller can repeat the request to complete the rest.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from fairwarning.core.commands import (
    AddInstances,
    ChangeModel,
    ChangePolicy,
    Command,
    OperateAll,
    UpgradeInstances,
)
from fairwarning.core.decide import decide
from fairwarning.core.model import (
    Actor,
    EventId,
    Instance,
    InstanceName,
    OperationKind,
    Policy,
    Protection,
    Scope,
    ScopeId,
    ScopeKind,
)
from fairwarning.core.new_events import deleted_instance
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import refuse_capacity
from fairwarning.core.roster import refuse_scope
from fairwarning.core.scale_sets import (
    Growth,
    grow,
    instance_template,
    leavers_to,
    members,
    new_instances,
    set_id,
)
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.locks import held

__all__ = [
    "Resized",
    "change_model",
    "change_policy",
    "groups_of",
    "leavers_to",
    "members",
    "operate_all",
    "replace_instance",
    "resize",
    "upgrade",
]

Step = tuple[Scope, Command]


class Resized(NamedTuple):
    added: tuple[InstanceName, ...] = ()
    events: tuple[EventId, ...] = ()
    """The events that delete instances; each event lasts until its instance is gone."""


async def groups_of(control: Control, scope: Scope) -> list[Scope]:
    """Read all scopes of the resource that `scope` belongs to, also scopes without instances."""
    if scope.roster.kind is not ScopeKind.SCALE_SET:
        return [await control.store.read(scope.id)]
    found: list[Scope] = []
    while True:
        try:
            found.append(await control.store.read(ScopeId(f"{set_id(scope)}/{len(found)}")))
        except Refused:
            return found


async def resize(
    control: Control,
    groups: Sequence[Scope],
    capacity: int,
    *,
    addresses: Sequence[str] = (),
    pattern: Instance | None = None,
    by: Actor,
    why: str = "",
) -> Resized:
    """Add or delete instances until the scale set has `capacity` of them.

    The instances with the highest numbers or last names are deleted, except those that are
    protected from scale-in; if their model has a terminate notice, a Terminate event announces it.
    New instances are copies of `pattern`, or else of the instances in the set. Each gets one of
    `addresses`, in order. Raises Refused or Problem.
    """
    _refuse_not_a_set(groups)
    refuse_capacity(groups[0].roster.resource, capacity)
    async with _holding(control, groups, by) as (locked, there):
        present = members(there)
        going = [(scope.id, each.name) for scope, each in leavers_to(there, capacity)]
        if going:
            steps, events = _operations(locked, there, going, OperationKind.DELETE)
            await _carry_out(locked, steps, by=by, why=why)
            return Resized(events=events)
        arriving = new_instances(
            there,
            capacity - len(present),
            template=pattern or instance_template(there),
            addresses=addresses,
            new_id=control.engine.new_id,
        )
        await _add(locked, grow(there, arriving), by=by, why=why)
        return Resized(added=tuple(each.name for each in arriving))


async def replace_instance(
    control: Control,
    groups: Sequence[Scope],
    name: InstanceName,
    *,
    addresses: Sequence[str] = (),
    by: Actor,
    why: str = "",
) -> Resized:
    """Add a new instance at once, and delete the old one, after its notice if it has one."""
    _refuse_not_a_set(groups)
    async with _holding(control, groups, by) as (locked, there):
        scope, old = _member(there, name)
        arriving = new_instances(
            there, 1, template=old, addresses=addresses[:1], new_id=control.engine.new_id
        )
        leave, events = _operations(locked, there, [(scope.id, name)], OperationKind.DELETE)
        growth = grow(there, arriving, leaving=name)
        await _add(locked, growth, then=leave, by=by, why=why)
        return Resized(added=tuple(each.name for each in arriving), events=events)


async def operate_all(
    control: Control,
    machines: Sequence[tuple[ScopeId, InstanceName]],
    kind: OperationKind,
    *,
    by: Actor,
    why: str = "",
) -> tuple[EventId, ...]:
    """Do the operation on each machine, and return the ids of the events, in the same order.

    Within a scope, it is done on all machines or on none. Raises Refused.
    """
    scopes = [await control.store.read(id) for id in dict.fromkeys(id for id, _ in machines)]
    steps, events = _operations(control, scopes, machines, kind)
    await _carry_out(control, steps, by=by, why=why)
    return events


async def change_model(
    control: Control,
    groups: Sequence[Scope],
    *,
    terminate_notice_ms: int | None,
    reimage_notice_ms: int | None,
    profile: str,
    by: Actor,
    why: str = "",
) -> None:
    """Change the model. New instances have it at once, existing ones after their upgrade."""
    command = ChangeModel(
        terminate_notice_ms=terminate_notice_ms,
        reimage_notice_ms=reimage_notice_ms,
        profile=profile,
    )
    await _change_all(control, groups, command, by=by, why=why)


async def change_policy(
    control: Control, groups: Sequence[Scope], policy: Policy, *, by: Actor, why: str = ""
) -> None:
    """Change the policy of a scale set or of any other resource."""
    await _change_all(control, groups, ChangePolicy(policy=policy), by=by, why=why)


async def upgrade(
    control: Control,
    groups: Sequence[Scope],
    names: Collection[InstanceName] | None,
    *,
    by: Actor,
    why: str = "",
) -> tuple[InstanceName, ...]:
    """Give instances the latest model, and return the names of those that did not have it.

    If `names` is None, all instances are upgraded that are not protected from actions on the set.
    Raises Refused for an unknown name.
    """
    _refuse_not_a_set(groups)
    async with _holding(control, groups, by) as (locked, there):
        if names is not None:
            _refuse_unknown(there, names)
        behind = {
            scope.id: tuple(
                each.name
                for each in scope.roster.live
                if _is_chosen(each, names) and not scope.roster.latest_model_applied(each)
            )
            for scope in there
        }
        steps = [
            (scope, UpgradeInstances(names=behind[scope.id])) for scope in there if behind[scope.id]
        ]
        await _carry_out(locked, steps, by=by, why=why)
        return tuple(name for own in behind.values() for name in own)


def _is_chosen(instance: Instance, names: Collection[InstanceName] | None) -> bool:
    if names is None:
        return Protection.SET_ACTIONS not in instance.protected_from
    return instance.name in names


@asynccontextmanager
async def _holding(
    control: Control, groups: Sequence[Scope], by: Actor
) -> AsyncIterator[tuple[Control, list[Scope]]]:
    """Lock the resource, and yield a control and all scopes of the resource, freshly read.

    Changes through the yielded control are stored only while the lock is held.
    """
    first = groups[0]
    is_set = first.roster.kind is ScopeKind.SCALE_SET
    async with held(control, set_id(first) if is_set else first.id, by=by) as locked:
        yield locked, await groups_of(locked, first)


async def _change_all(
    control: Control, groups: Sequence[Scope], command: Command, *, by: Actor, why: str
) -> None:
    async with _holding(control, groups, by) as (locked, there):
        await _carry_out(locked, [(scope, command) for scope in there], by=by, why=why)


def _operations(
    control: Control,
    scopes: Sequence[Scope],
    machines: Sequence[tuple[ScopeId, InstanceName]],
    kind: OperationKind,
) -> tuple[list[Step], tuple[EventId, ...]]:
    ids: list[EventId] = []
    targets: dict[ScopeId, list[tuple[EventId, InstanceName]]] = defaultdict(list)
    for owner, name in dict.fromkeys(machines):
        ids.append(control.engine.new_id())
        targets[owner].append((ids[-1], name))
    steps: list[Step] = [
        (scope, OperateAll(kind=kind, targets=tuple(targets[scope.id])))
        for scope in scopes
        if scope.id in targets
    ]
    return steps, tuple(ids)


async def _add(
    control: Control, growth: Growth, *, then: Sequence[Step] = (), by: Actor, why: str
) -> None:
    steps: list[Step] = [
        (scope, AddInstances(instances=instances)) for scope, instances in growth.added
    ]
    await _try_out(control, [*steps, *then])
    for scope in growth.created:
        refuse_scope(scope)
    await _refuse_addresses(control, growth)
    await _carry_out(control, steps, by=by, why=why)
    if growth.created:
        try:
            await control.engine.create(growth.created, by=by, why=why)
        except Refused as refused:
            raise _overtaken(refused, [scope.id for scope, _ in steps]) from None
    await _carry_out(control, then, by=by, why=why)


async def _carry_out(control: Control, steps: Sequence[Step], *, by: Actor, why: str) -> None:
    """Try all steps, then do each in its own transaction. Raises Refused."""
    await _try_out(control, steps)
    for done, (scope, command) in enumerate(steps):
        try:
            await control.engine.submit(scope.id, command, by=by, why=why)
        except Refused as refused:
            raise _overtaken(refused, [each.id for each, _ in steps[:done]]) from None
        # The store in memory answers at once, and polls must not wait for all scopes.
        await asyncio.sleep(0)


async def _try_out(control: Control, steps: Sequence[Step]) -> None:
    """Check the steps against the scopes as they were read. Raises Refused."""
    for scope, command in steps:
        decide(scope, command, control.clock.now())
        # A command may concern 100 instances, and polls must not wait for all commands.
        await asyncio.sleep(0)


def _overtaken(refused: Refused, done: Sequence[ScopeId]) -> Refused:
    """Return the refusal with a text that says which scopes were already changed."""
    if done:
        so_far = f"; it was done in {', '.join(done)} and nowhere else, so look and ask again"
    else:
        so_far = "; nothing was done"
    return Refused(refused.code, refused.message + so_far)


async def _refuse_addresses(control: Control, growth: Growth) -> None:
    """Raises Refused if an address of a new instance is in use or is given twice."""
    arriving = [each for _, instances in growth.added for each in instances]
    arriving += [each for scope in growth.created for each in scope.roster.live]
    addresses = [address for each in arriving for address in each.addresses]
    for number, address in enumerate(addresses):
        owner = await control.store.locate(address)
        if owner is not None or address in addresses[:number]:
            whose = f"belongs to {owner[1]} of {owner[0]}" if owner else "is given twice"
            raise Refused(
                Code.ADDRESS_IN_USE,
                f"address {address} {whose}; addresses are unique across the fleet, so choose "
                "another",
            )


def _member(groups: Sequence[Scope], name: InstanceName) -> tuple[Scope, Instance]:
    for scope, instance in members(groups):
        if instance.name == name:
            return scope, instance
    raise Refused(
        Code.UNKNOWN_INSTANCE,
        f"scale set {groups[0].roster.resource!r} has no instance {name!r} that is not about to "
        "be deleted; `fairwarning fleet show` lists them",
    )


def _refuse_unknown(groups: Sequence[Scope], names: Collection[InstanceName]) -> None:
    for name in names:
        owners = [scope for scope in groups if name in scope.roster.instances]
        if not owners:
            raise Refused(
                Code.UNKNOWN_INSTANCE,
                f"scale set {groups[0].roster.resource!r} has no instance {name!r}; "
                "`fairwarning fleet show` lists them",
            )
        if not any(scope.roster.has_live(name) for scope in owners):
            raise deleted_instance(owners[0].id, name)


def _refuse_not_a_set(groups: Sequence[Scope]) -> None:
    roster = groups[0].roster
    if roster.kind is not ScopeKind.SCALE_SET:
        raise Refused(
            Code.NOT_A_SCALE_SET,
            f"{roster.resource!r} is a {roster.kind} and no scale set; name a scale set",
        )
