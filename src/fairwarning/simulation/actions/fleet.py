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


async def _power(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    live = scope.roster.live
    if not live:
        return NOTHING
    command = commands.ReportPower(instance=rng.choice(live).name, power=rng.choice(list(Power)))
    return await ask(world, scope, command, rng)


async def _model(world: World, rng: Random) -> str:
    notice_ms = rng.choice([None, 5 * MINUTE_MS, 10 * MINUTE_MS, 4 * MINUTE_MS])
    command = commands.ChangeModel(
        terminate_notice_ms=notice_ms,
        reimage_notice_ms=rng.choice([None, 15 * MINUTE_MS, 15 * MINUTE_MS, 14 * MINUTE_MS]),
        profile=rng.choice(["", "another"]),
    )
    return await ask(world, await any_scope(world, rng), command, rng)


async def _upgrade(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    names = tuple(each.name for each in scope.roster.live)
    return await ask(world, scope, commands.UpgradeInstances(names=names), rng)


async def _policy(world: World, rng: Random) -> str:
    policy = Policy(
        approve_user_reboot=rng.random() < 0.3,
        approve_user_redeploy=rng.random() < 0.3,
        approve_all_instances_down=rng.random() < 0.5,
        notice_ms=rng.choice([{}, {EventType.REBOOT: HOUR_MS}, {EventType.REBOOT: MINUTE_MS}]),
    )
    return await ask(world, await any_scope(world, rng), commands.ChangePolicy(policy=policy), rng)


async def _add(world: World, rng: Random) -> str:
    scope = await any_scope(world, rng)
    roster = scope.roster
    number = roster.next_number
    instance = Instance(
        name=InstanceName(f"{roster.resource}_{number}"),
        update_domain=number % roster.update_domains,
        model=roster.model,
    )
    return await ask(world, scope, commands.AddInstances(instances=(instance,)), rng)


async def _declare(world: World, rng: Random) -> str:
    """Declares a scope again, so that some instances leave, move, change or come back."""
    scope = await any_scope(world, rng)
    roster = scope.roster
    pool = list(roster.instances.values() if rng.random() < 0.2 else roster.live)
    leaving = rng.choice([0, 0, 0.3, 1])
    wanted = [_edited(roster, each, rng) for each in pool if rng.random() >= leaving]
    if rng.random() < 0.3:
        name = InstanceName(f"{roster.resource}_{roster.next_number + rng.choice([0, 0, 1, -1])}")
        wanted.append(Instance(name=name, update_domain=rng.randrange(roster.update_domains)))
    notice_ms = rng.choice([roster.model.terminate_notice_ms] * 4 + [None, 10 * MINUTE_MS])
    left_out = {each.name for each in pool} - {each.name for each in wanted}
    command = commands.Declare(
        roster=replace(
            roster,
            test=rng.random() < 0.5 if rng.random() < 0.1 else roster.test,
            model=replace(roster.model, terminate_notice_ms=notice_ms),
            policy=Policy() if rng.random() < 0.1 else roster.policy,
            instances={each.name: each for each in wanted},
        ),
        force=rng.random() < 0.5,
        terminates={name: world.new_id() for name in sorted(left_out)},
        without_notice=frozenset(left_out if rng.random() < 0.3 else ()),
    )
    return await ask(world, scope, command, rng)


def _edited(roster: Roster, instance: Instance, rng: Random) -> Instance:
    instance = replace(instance, deleted_ms=None, power=rng.choice(list(Power)))
    if rng.random() < 0.2:
        instance = replace(instance, update_domain=rng.randrange(roster.update_domains))
    if rng.random() < 0.2:
        instance = replace(instance, handle=rng.choice(["", "h"]), addresses=())
    return instance


async def _move_address(world: World, rng: Random) -> str:
    """Moves an address to another instance, perhaps of another scope, and perhaps back."""
    address = rng.choice(_ADDRESSES)
    owner = await world.store.locate(address)
    scopes = [await any_scope(world, rng) for _ in range(rng.randint(1, 2))]
    there = [
        (scope.id, rng.choice(scope.roster.live).name) for scope in scopes if scope.roster.live
    ]
    back = [owner] if owner is not None and rng.random() < 0.5 else []
    places = [*([owner] if owner is not None else []), *there, *back]
    world.spawn(_move(world, address, places, rng))
    return f"{address}: {places}"


async def _move(
    world: World, address: str, places: list[tuple[ScopeId, InstanceName]], rng: Random
) -> None:
    """Gives the address to one instance after the other, each when the last change is answered."""
    for number, (scope_id, name) in enumerate(places):
        if number:
            await _declare_addresses(world, *places[number - 1], (), rng)
        if number or await world.calls.counted(world.store.locate(address)) is None:
            await _declare_addresses(world, scope_id, name, (address,), rng)


async def _declare_addresses(
    world: World, scope_id: ScopeId, name: InstanceName, addresses: tuple[str, ...], rng: Random
) -> None:
    roster = (await world.calls.counted(world.store.read(scope_id))).roster
    node = any_node(world, rng)
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
