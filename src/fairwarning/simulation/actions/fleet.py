"""Actions that change the fleet: instances of a scope, their rules and their addresses."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairwarning.core import commands
from fairwarning.core.instants import HOUR_MS, MINUTE_MS
from fairwarning.core.model import EventType, Instance, InstanceName, Policy, Power, Roster, ScopeId
from fairwarning.simulation.actions.choices import (
    NOTHING,
    OPERATOR,
    Action,
    any_node,
    any_scope,
    ask,
)
from fairwarning.simulation.records import CallerRequest

if TYPE_CHECKING:
    from fairwarning.simulation.world import World

_ADDRESSES = ("10.9.0.1", "10.9.0.2")
"""`_move_address` moves these addresses from one instance to another."""


async def _power(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    live = scope.roster.live
    if not live:
        return NOTHING
    command = commands.ReportPower(instance=dice.choice(live).name, power=dice.choice(list(Power)))
    return await ask(world, scope, command, dice)


async def _model(world: World, dice: Random) -> str:
    notice_ms = dice.choice([None, 5 * MINUTE_MS, 10 * MINUTE_MS, 4 * MINUTE_MS])
    command = commands.ChangeModel(
        terminate_notice_ms=notice_ms,
        reimage_notice_ms=dice.choice([None, 15 * MINUTE_MS, 15 * MINUTE_MS, 14 * MINUTE_MS]),
        profile=dice.choice(["", "another"]),
    )
    return await ask(world, await any_scope(world, dice), command, dice)


async def _upgrade(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    names = tuple(each.name for each in scope.roster.live)
    return await ask(world, scope, commands.UpgradeInstances(names=names), dice)


async def _policy(world: World, dice: Random) -> str:
    policy = Policy(
        approve_user_reboot=dice.random() < 0.3,
        approve_user_redeploy=dice.random() < 0.3,
        approve_all_instances_down=dice.random() < 0.5,
        notice_ms=dice.choice([{}, {EventType.REBOOT: HOUR_MS}, {EventType.REBOOT: MINUTE_MS}]),
    )
    return await ask(
        world, await any_scope(world, dice), commands.ChangePolicy(policy=policy), dice
    )


async def _add(world: World, dice: Random) -> str:
    scope = await any_scope(world, dice)
    roster = scope.roster
    number = roster.next_number
    instance = Instance(
        name=InstanceName(f"{roster.resource}_{number}"),
        update_domain=number % roster.update_domains,
        model=roster.model,
    )
    return await ask(world, scope, commands.AddInstances(instances=(instance,)), dice)


async def _declare(world: World, dice: Random) -> str:
    """Declares a scope again, so that some instances leave, move, change or come back."""
    scope = await any_scope(world, dice)
    roster = scope.roster
    pool = list(roster.instances.values() if dice.random() < 0.2 else roster.live)
    leaving = dice.choice([0, 0, 0.3, 1])
    wanted = [_edited(roster, each, dice) for each in pool if dice.random() >= leaving]
    if dice.random() < 0.3:
        name = InstanceName(f"{roster.resource}_{roster.next_number + dice.choice([0, 0, 1, -1])}")
        wanted.append(Instance(name=name, update_domain=dice.randrange(roster.update_domains)))
    notice_ms = dice.choice([roster.model.terminate_notice_ms] * 4 + [None, 10 * MINUTE_MS])
    left_out = {each.name for each in pool} - {each.name for each in wanted}
    command = commands.Declare(
        roster=replace(
            roster,
            test=dice.random() < 0.5 if dice.random() < 0.1 else roster.test,
            model=replace(roster.model, terminate_notice_ms=notice_ms),
            policy=Policy() if dice.random() < 0.1 else roster.policy,
            instances={each.name: each for each in wanted},
        ),
        force=dice.random() < 0.5,
        terminates={name: world.new_id() for name in sorted(left_out)},
        without_notice=frozenset(left_out if dice.random() < 0.3 else ()),
    )
    return await ask(world, scope, command, dice)


def _edited(roster: Roster, instance: Instance, dice: Random) -> Instance:
    instance = replace(instance, deleted_ms=None, power=dice.choice(list(Power)))
    if dice.random() < 0.2:
        instance = replace(instance, update_domain=dice.randrange(roster.update_domains))
    if dice.random() < 0.2:
        instance = replace(instance, handle=dice.choice(["", "h"]), addresses=())
    return instance


async def _move_address(world: World, dice: Random) -> str:
    """Moves an address to another instance, perhaps of another scope, and perhaps back."""
    address = dice.choice(_ADDRESSES)
    owner = await world.store.locate(address)
    scopes = [await any_scope(world, dice) for _ in range(dice.randint(1, 2))]
    there = [
        (scope.id, dice.choice(scope.roster.live).name) for scope in scopes if scope.roster.live
    ]
    back = [owner] if owner is not None and dice.random() < 0.5 else []
    places = [*([owner] if owner is not None else []), *there, *back]
    world.spawn(_move(world, address, places, dice))
    return f"{address}: {places}"


async def _move(
    world: World, address: str, places: list[tuple[ScopeId, InstanceName]], dice: Random
) -> None:
    """Gives the address to one instance after the other, each when the last change is answered."""
    for number, (scope_id, name) in enumerate(places):
        if number:
            await _declare_addresses(world, *places[number - 1], (), dice)
        if number or await world.calls.counted(world.store.locate(address)) is None:
            await _declare_addresses(world, scope_id, name, (address,), dice)


async def _declare_addresses(
    world: World, scope_id: ScopeId, name: InstanceName, addresses: tuple[str, ...], dice: Random
) -> None:
    roster = (await world.calls.counted(world.store.read(scope_id))).roster
    node = any_node(world, dice)
    if node is None or not roster.has_live(name):
        return
    instance = replace(roster.instances[name], addresses=addresses)
    wanted = {**{each.name: each for each in roster.live}, name: instance}
    command = commands.Declare(roster=replace(roster, instances=wanted))
    await world.submit(node, CallerRequest(scope_id=scope_id, command=command, by=OPERATOR))


ACTIONS: dict[str, Action] = {
    "power": _power,
    "model": _model,
    "upgrade": _upgrade,
    "policy": _policy,
    "add": _add,
    "declare": _declare,
    "move_address": _move_address,
}
