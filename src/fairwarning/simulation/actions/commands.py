"""Actions of callers of the engine: platform events, operations, and decisions about them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fairwarning.core import commands
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, later
from fairwarning.core.model import (
    ANNOUNCED_TYPES,
    EventType,
    InstanceName,
    OperationKind,
    Phase,
    ScopeKind,
    instance_actor,
)
from fairwarning.simulation.actions.choices import (
    NOTHING,
    OPERATOR,
    Action,
    any_event,
    any_scope,
    ask,
    instances,
)

if TYPE_CHECKING:
    from fairwarning.simulation.world import World


async def _schedule(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    command = commands.Schedule(
        event_id=world.new_id(),
        type=rng.choice(ANNOUNCED_TYPES),
        targets=instances(scope, rng),
        notice_ms=rng.choice([None, None, 0, 10 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS]),
        duration_s=rng.choice([None, 0, 5, 120]),
    )
    return await ask(world, scope, command, rng)


async def _happen(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    command = commands.Schedule(
        event_id=world.new_id(),
        type=rng.choice([EventType.REBOOT, EventType.REDEPLOY]),
        targets=instances(scope, rng),
        already_happened=True,
    )
    return await ask(world, scope, command, rng)


async def _operate(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    kind = _kind(rng)
    for name in instances(scope, rng)[:2]:
        command = commands.Operate(event_id=world.new_id(), kind=kind, instance=name)
        note = await ask(world, scope, command, rng)
    return note


def _kind(rng: Random) -> OperationKind:
    kinds: list[OperationKind] = [*OperationKind, *[OperationKind.DELETE] * 3]
    return rng.choice(kinds)


async def _operate_all(world: World, rng: Random) -> str:
    """Asks for one operation on several instances. If one name is wrong, all must be refused."""
    scope = await any_scope(world, rng)
    names = [each.name for each in scope.roster.live]
    chosen = rng.sample(names, rng.randint(0, len(names)))
    chosen += rng.choice([(), (), (), instances(scope, rng)])
    targets = tuple((world.new_id(), name) for name in chosen)
    return await ask(world, scope, commands.OperateAll(kind=_kind(rng), targets=targets), rng)


async def _scale_in(world: World, rng: Random) -> str:
    """Deletes instances of a scale set that polls, so that Terminate events wait for each other."""
    scopes = [await world.store.read(scope_id) for scope_id in world.scope_ids]
    sets = [each for each in scopes if each.roster.kind is ScopeKind.SCALE_SET and each.roster.live]
    if not sets:
        return NOTHING
    scope = rng.choice(sets)
    note = await ask(world, scope, commands.Activate(), rng)
    live = [each.name for each in scope.roster.live]
    chosen = rng.sample(live, min(len(live), rng.randint(1, 2)))
    targets = tuple((world.new_id(), name) for name in chosen)
    kind = OperationKind.DELETE
    if rng.random() < 0.3:
        return await ask(world, scope, commands.OperateAll(kind=kind, targets=targets), rng)
    for event_id, name in targets:
        command = commands.Operate(event_id=event_id, kind=kind, instance=name)
        note = await ask(world, scope, command, rng)
    return note


async def _approve(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    event = any_event(scope, rng, Phase.SCHEDULED) or any_event(scope, rng, *Phase)
    if event is None:
        return NOTHING
    caller = await any_scope(world, rng) if rng.random() < 0.1 else scope
    names = list(caller.roster.instances) or [InstanceName("stranger")]
    by = OPERATOR if rng.random() < 0.2 else instance_actor(rng.choice(names))
    return await ask(world, scope, commands.Approve(event_id=event.id, by=by), rng, by)


async def _repeat(world: World, rng: Random) -> str:
    """Repeats a command whose caller got no answer, perhaps much later."""
    if not world.requests:
        return NOTHING
    asked = rng.choice(world.requests[-30:])
    scope = await world.store.read(asked.scope_id)
    return await ask(world, scope, asked.command, rng, asked.by)


async def _cancel(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    event = any_event(scope, rng, *Phase)
    return (
        NOTHING
        if event is None
        else await ask(world, scope, commands.Cancel(event_id=event.id), rng)
    )


async def _postpone(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    event = any_event(scope, rng, *Phase)
    if event is None:
        return NOTHING
    when = later(world.now(), rng.choice([0, 10 * MINUTE_MS, HOUR_MS]))
    command = commands.Postpone(event_id=event.id, new_event_id=world.new_id(), not_before_ms=when)
    return await ask(world, scope, command, rng)


async def _activate(world: World, rng: Random) -> str:
    return await ask(world, await any_scope(world, rng), commands.Activate(), rng)


ACTIONS: dict[str, Action] = {
    "schedule": _schedule,
    "happen": _happen,
    "operate": _operate,
    "operate_all": _operate_all,
    "scale_in": _scale_in,
    "approve": _approve,
    "repeat": _repeat,
    "cancel": _cancel,
    "postpone": _postpone,
    "activate": _activate,
}
