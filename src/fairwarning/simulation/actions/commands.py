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


async def _schedule(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    command = commands.Schedule(
        event_id=world.new_id(),
        type=dice.choice(ANNOUNCED_TYPES),
        targets=instances(scope, dice),
        notice_ms=dice.choice([None, None, 0, 10 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS]),
        duration_s=dice.choice([None, 0, 5, 120]),
    )
    return await ask(world, scope, command, dice)


async def _happen(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    command = commands.Schedule(
        event_id=world.new_id(),
        type=dice.choice([EventType.REBOOT, EventType.REDEPLOY]),
        targets=instances(scope, dice),
        already_happened=True,
    )
    return await ask(world, scope, command, dice)


async def _operate(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    kind = _kind(dice)
    for name in instances(scope, dice)[:2]:
        command = commands.Operate(event_id=world.new_id(), kind=kind, instance=name)
        note = await ask(world, scope, command, dice)
    return note


def _kind(dice: Random) -> OperationKind:
    kinds: list[OperationKind] = [*OperationKind, *[OperationKind.DELETE] * 3]
    return dice.choice(kinds)


async def _operate_all(world: World, dice: Random) -> str:
    """Asks for one operation on several instances. If one name is wrong, all must be refused."""
    scope = await any_scope(world, dice)
    names = [each.name for each in scope.roster.live]
    chosen = dice.sample(names, dice.randint(0, len(names)))
    chosen += dice.choice([(), (), (), instances(scope, dice)])
    targets = tuple((world.new_id(), name) for name in chosen)
    return await ask(world, scope, commands.OperateAll(kind=_kind(dice), targets=targets), dice)


async def _scale_in(world: World, dice: Random) -> str:
    """Deletes instances of a scale set that polls, so that Terminate events wait for each other."""
    scopes = [await world.store.read(scope_id) for scope_id in world.scope_ids]
    sets = [each for each in scopes if each.roster.kind is ScopeKind.SCALE_SET and each.roster.live]
    if not sets:
        return NOTHING
    scope = dice.choice(sets)
    note = await ask(world, scope, commands.Activate(), dice)
    live = [each.name for each in scope.roster.live]
    chosen = dice.sample(live, min(len(live), dice.randint(1, 2)))
    targets = tuple((world.new_id(), name) for name in chosen)
    kind = OperationKind.DELETE
    if dice.random() < 0.3:
        return await ask(world, scope, commands.OperateAll(kind=kind, targets=targets), dice)
    for event_id, name in targets:
        command = commands.Operate(event_id=event_id, kind=kind, instance=name)
        note = await ask(world, scope, command, dice)
    return note


async def _approve(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    event = any_event(scope, dice, Phase.SCHEDULED) or any_event(scope, dice, *Phase)
    if event is None:
        return NOTHING
    caller = await any_scope(world, dice) if dice.random() < 0.1 else scope
    names = list(caller.roster.instances) or [InstanceName("stranger")]
    by = OPERATOR if dice.random() < 0.2 else instance_actor(dice.choice(names))
    return await ask(world, scope, commands.Approve(event_id=event.id, by=by), dice, by)


async def _repeat(world: World, dice: Random) -> str:
    """Repeats a command whose caller got no answer, perhaps much later."""
    if not world.requests:
        return NOTHING
    asked = dice.choice(world.requests[-30:])
    scope = await world.store.read(asked.scope_id)
    return await ask(world, scope, asked.command, dice, asked.by)


async def _cancel(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    event = any_event(scope, dice, *Phase)
    return (
        NOTHING
        if event is None
        else await ask(world, scope, commands.Cancel(event_id=event.id), dice)
    )


async def _postpone(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    event = any_event(scope, dice, *Phase)
    if event is None:
        return NOTHING
    when = later(world.now(), dice.choice([0, 10 * MINUTE_MS, HOUR_MS]))
    command = commands.Postpone(event_id=event.id, new_event_id=world.new_id(), not_before_ms=when)
    return await ask(world, scope, command, dice)


async def _activate(world: World, dice: Random) -> str:
    return await ask(world, await any_scope(world, dice), commands.Activate(), dice)


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
