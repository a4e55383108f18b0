"""What can happen in a world, one function each. The name is the step's kind in a plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairwarning.core.commands import (
    Activate,
    AddInstances,
    Approve,
    Cancel,
    ChangeModel,
    ChangePolicy,
    Command,
    Declare,
    Operate,
    OperateAll,
    Postpone,
    ReportDone,
    ReportFailure,
    ReportPower,
    Schedule,
    UpgradeInstances,
)
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later
from fairwarning.core.model import (
    ANNOUNCED_TYPES,
    Actor,
    Event,
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Phase,
    Policy,
    Power,
    Roster,
    Scope,
    ScopeKind,
    instance_actor,
    operator_actor,
)
from fairwarning.engine.ports import Found
from fairwarning.sim.asked import Asked
from fairwarning.sim.driver import Impact
from fairwarning.sim.gates import Verdict

if TYPE_CHECKING:
    from fairwarning.sim.world import Node, World

Action = Callable[["World", Random], Awaitable[str]]
_OPERATOR = operator_actor("sim")
_NO = "nothing to do"


async def take(world: World, kind: str, dice: Random) -> str:
    return await _ACTIONS[kind](world, dice)


async def _ask(
    world: World, scope: Scope, command: Command, dice: Random, by: Actor = _OPERATOR
) -> str:
    alive = [node for node in world.nodes if node.is_alive]
    if not alive:
        return "no node is alive"
    node: Node = dice.choice(alive)
    world.ask(node, Asked(scope_id=scope.id, command=command, by=by))
    return f"{node.name} {command}"


async def _scope(world: World, dice: Random) -> Scope:
    return await world.store.read(dice.choice(world.scope_ids))


def _instances(scope: Scope, dice: Random) -> tuple[InstanceName, ...]:
    """Mostly of one update domain, sometimes of several, of a stranger, or none."""
    names = list(scope.roster.instances)
    if not names or dice.random() < 0.03:
        return (InstanceName("stranger"),)
    first = scope.roster.instances[dice.choice(names)]
    same = [n for n in names if scope.roster.instances[n].update_domain == first.update_domain]
    pool = names if dice.random() < 0.1 else same
    return tuple(dice.sample(pool, dice.randint(1, min(3, len(pool)))))


def _event(scope: Scope, dice: Random, *phases: Phase) -> Event | None:
    found = [each for each in scope.events.values() if each.phase in phases]
    return dice.choice(found) if found else None


async def _schedule(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    command = Schedule(
        event_id=world.new_id(),
        type=dice.choice(ANNOUNCED_TYPES),
        targets=_instances(scope, dice),
        notice_ms=dice.choice([None, None, 0, 10 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS]),
        duration_s=dice.choice([None, 0, 5, 120]),
    )
    return await _ask(world, scope, command, dice)


async def _happen(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    command = Schedule(
        event_id=world.new_id(),
        type=dice.choice([EventType.REBOOT, EventType.REDEPLOY]),
        targets=_instances(scope, dice),
        already_happened=True,
    )
    return await _ask(world, scope, command, dice)


async def _operate(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    kind = _kind(dice)
    for name in _instances(scope, dice)[:2]:
        command = Operate(event_id=world.new_id(), kind=kind, instance=name)
        note = await _ask(world, scope, command, dice)
    return note


def _kind(dice: Random) -> OperationKind:
    kinds: list[OperationKind] = [*OperationKind, *[OperationKind.DELETE] * 3]
    return dice.choice(kinds)


async def _operate_all(world: World, dice: Random) -> str:
    """Sometimes on a stranger or on somebody twice, so that all of it must be refused."""
    scope = await _scope(world, dice)
    names = [each.name for each in scope.roster.live]
    chosen = dice.sample(names, dice.randint(0, len(names)))
    chosen += dice.choice([(), (), (), _instances(scope, dice)])
    targets = tuple((world.new_id(), name) for name in chosen)
    return await _ask(world, scope, OperateAll(kind=_kind(dice), targets=targets), dice)


async def _scale_in(world: World, dice: Random) -> str:
    """Deletes in a scale set that is watched: the stuff that barriers are made of."""
    scopes = [await world.store.read(scope_id) for scope_id in world.scope_ids]
    sets = [each for each in scopes if each.roster.kind is ScopeKind.SCALE_SET and each.roster.live]
    if not sets:
        return _NO
    scope = dice.choice(sets)
    note = await _ask(world, scope, Activate(), dice)
    live = [each.name for each in scope.roster.live]
    chosen = dice.sample(live, min(len(live), dice.randint(1, 2)))
    targets = tuple((world.new_id(), name) for name in chosen)
    kind = OperationKind.DELETE
    if dice.random() < 0.3:
        return await _ask(world, scope, OperateAll(kind=kind, targets=targets), dice)
    for event_id, name in targets:
        command = Operate(event_id=event_id, kind=kind, instance=name)
        note = await _ask(world, scope, command, dice)
    return note


async def _approve(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    event = _event(scope, dice, Phase.SCHEDULED) or _event(scope, dice, *Phase)
    if event is None:
        return _NO
    caller = await _scope(world, dice) if dice.random() < 0.1 else scope
    names = list(caller.roster.instances) or [InstanceName("stranger")]
    by = _OPERATOR if dice.random() < 0.2 else instance_actor(dice.choice(names))
    return await _ask(world, scope, Approve(event_id=event.id, by=by), dice, by)


async def _repeat(world: World, dice: Random) -> str:
    """A caller who got no answer asks again, perhaps long after."""
    if not world.asked:
        return _NO
    asked = dice.choice(world.asked[-30:])
    scope = await world.store.read(asked.scope_id)
    return await _ask(world, scope, asked.command, dice, asked.by)


async def _cancel(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    event = _event(scope, dice, *Phase)
    return _NO if event is None else await _ask(world, scope, Cancel(event_id=event.id), dice)


async def _postpone(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    event = _event(scope, dice, *Phase)
    if event is None:
        return _NO
    when = later(world.now(), dice.choice([0, 10 * MINUTE_MS, HOUR_MS]))
    command = Postpone(event_id=event.id, new_event_id=world.new_id(), not_before_ms=when)
    return await _ask(world, scope, command, dice)


async def _activate(world: World, dice: Random) -> str:
    return await _ask(world, await _scope(world, dice), Activate(), dice)


async def _seen(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    if not scope.is_activated:
        return _NO
    await world.store.note_seen({scope.id: world.now()})
    world.last_asked[scope.id] = world.now()
    return scope.id


async def _power(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    live = scope.roster.live
    if not live:
        return _NO
    command = ReportPower(instance=dice.choice(live).name, power=dice.choice(list(Power)))
    return await _ask(world, scope, command, dice)


async def _model(world: World, dice: Random) -> str:
    notice_ms = dice.choice([None, 5 * MINUTE_MS, 10 * MINUTE_MS, 4 * MINUTE_MS])
    command = ChangeModel(
        terminate_notice_ms=notice_ms,
        reimage_notice_ms=dice.choice([None, 15 * MINUTE_MS, 15 * MINUTE_MS, 14 * MINUTE_MS]),
        profile=dice.choice(["", "another"]),
    )
    return await _ask(world, await _scope(world, dice), command, dice)


async def _upgrade(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    names = tuple(each.name for each in scope.roster.live)
    return await _ask(world, scope, UpgradeInstances(names=names), dice)


async def _policy(world: World, dice: Random) -> str:
    policy = Policy(
        approve_user_reboot=dice.random() < 0.3,
        approve_user_redeploy=dice.random() < 0.3,
        approve_all_instances_down=dice.random() < 0.5,
        notice_ms=dice.choice([{}, {EventType.REBOOT: HOUR_MS}, {EventType.REBOOT: MINUTE_MS}]),
    )
    return await _ask(world, await _scope(world, dice), ChangePolicy(policy=policy), dice)


async def _add(world: World, dice: Random) -> str:
    scope = await _scope(world, dice)
    roster = scope.roster
    number = roster.next_number
    instance = Instance(
        name=InstanceName(f"{roster.resource}_{number}"),
        update_domain=number % roster.update_domains,
        model=roster.model,
    )
    return await _ask(world, scope, AddInstances(instances=(instance,)), dice)


async def _declare(world: World, dice: Random) -> str:
    """Some leave, some move or change, somebody comes or comes back; sometimes all at once."""
    scope = await _scope(world, dice)
    roster = scope.roster
    pool = list(roster.instances.values() if dice.random() < 0.2 else roster.live)
    leaving = dice.choice([0, 0, 0.3, 1])
    wanted = [_edited(roster, each, dice) for each in pool if dice.random() >= leaving]
    if dice.random() < 0.3:
        name = InstanceName(f"{roster.resource}_{roster.next_number + dice.choice([0, 0, 1, -1])}")
        wanted.append(Instance(name=name, update_domain=dice.randrange(roster.update_domains)))
    notice_ms = dice.choice([roster.model.terminate_notice_ms] * 4 + [None, 10 * MINUTE_MS])
    command = Declare(
        roster=replace(
            roster,
            test=dice.random() < 0.5 if dice.random() < 0.1 else roster.test,
            model=replace(roster.model, terminate_notice_ms=notice_ms),
            policy=Policy() if dice.random() < 0.1 else roster.policy,
            instances={each.name: each for each in wanted},
        ),
        force=dice.random() < 0.5,
    )
    return await _ask(world, scope, command, dice)


def _edited(roster: Roster, instance: Instance, dice: Random) -> Instance:
    instance = replace(instance, deleted_ms=None, power=dice.choice(list(Power)))
    if dice.random() < 0.2:
        instance = replace(instance, update_domain=dice.randrange(roster.update_domains))
    if dice.random() < 0.2:
        instance = replace(instance, handle=dice.choice(["", "h"]), addresses=())
    return instance


async def _go_on(world: World, dice: Random) -> str:
    if not world.waiting:
        return _NO
    call = dice.choice(world.waiting)
    await world.release(call)
    return str(call)


async def _fail(world: World, dice: Random) -> str:
    if not world.waiting:
        return _NO
    call = dice.choice(world.waiting)
    verdict = Verdict.BUSY if call.may_be_busy and dice.random() < 0.5 else Verdict.FAIL
    world.happened["answer lost" if call.is_done else verdict.value] += 1
    await world.release(call, verdict)
    return f"{call}: {verdict.value}"


async def _settle(world: World, dice: Random) -> str:
    await world.settle()
    return ""


async def _deadline(world: World, dice: Random) -> str:
    """To the next alarm, or to just beside some event's NotBefore."""
    scope = await _scope(world, dice)
    targets = [event.not_before_ms for event in scope.in_phase(Phase.SCHEDULED)]
    next_ms = world.clock.next_ms()
    if next_ms is not None:
        targets.append(next_ms)
    ahead = [Instant(each) for each in targets if each > world.now()]
    if not ahead:
        return _NO
    by_ms = dice.choice(ahead) + dice.choice([-1, 0, 0, 1]) - world.now()
    world.clock.jump(by_ms)
    return f"+{by_ms} ms"


async def _later(world: World, dice: Random) -> str:
    by_ms = dice.choice([1, SECOND_MS, 31 * SECOND_MS, 10 * MINUTE_MS, HOUR_MS, DAY_MS + HOUR_MS])
    world.clock.jump(by_ms)
    return f"+{by_ms} ms"


async def _clock_step(world: World, dice: Random) -> str:
    by_ms = dice.choice([-1, -1000, -5 * MINUTE_MS, 5 * MINUTE_MS])
    world.clock.jump(by_ms)
    world.happened["clock stepped back" if by_ms < 0 else "clock stepped ahead"] += 1
    return f"{by_ms:+} ms"


def _with_impact(world: World, dice: Random, what: str, do: Callable[[Impact], None]) -> str:
    running = world.physical.running()
    if not running:
        return _NO
    impact = dice.choice(running)
    do(impact)
    world.happened[what] += 1
    return impact.key


async def _impact(world: World, dice: Random) -> str:
    return _with_impact(world, dice, "impact over", world.physical.finish)


async def _impact_fails(world: World, dice: Random) -> str:
    return _with_impact(world, dice, "impact failed", world.physical.fail)


async def _answer_lost(world: World, dice: Random) -> str:
    return _with_impact(world, dice, "driver's answer lost", world.physical.lose_answer)


async def _stale_report(world: World, dice: Random) -> str:
    """A driver's answer comes again, late or out of order. It may be stale, but it is no lie."""
    known = [each for each in world.physical.impacts.values() if each.state is not Found.UNKNOWN]
    if not known:
        return _NO
    impact = dice.choice(known)
    attempt = dice.randint(1, 4)
    command: Command = ReportFailure(event_id=impact.key, attempt=attempt, reason="stale")
    if impact.state is Found.DONE:
        command = ReportDone(event_id=impact.key)
    world.happened["stale report"] += 1
    return await _ask(world, await world.store.read(impact.scope_id), command, dice)


async def _crash(world: World, dice: Random) -> str:
    alive = [node for node in world.nodes if node.is_alive]
    if not alive:
        return _NO
    node = dice.choice(alive)
    world.crash(node)
    return node.name


async def _restart(world: World, dice: Random) -> str:
    dead = [number for number, node in enumerate(world.nodes) if not node.is_alive]
    if not dead:
        return _NO
    number = dice.choice(dead)
    await world.start_node(number)
    return world.nodes[number].name


_ACTIONS: dict[str, Action] = {
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
    "seen": _seen,
    "power": _power,
    "model": _model,
    "upgrade": _upgrade,
    "policy": _policy,
    "add": _add,
    "declare": _declare,
    "go_on": _go_on,
    "fail": _fail,
    "settle": _settle,
    "deadline": _deadline,
    "later": _later,
    "clock_step": _clock_step,
    "impact": _impact,
    "impact_fails": _impact_fails,
    "answer_lost": _answer_lost,
    "stale_report": _stale_report,
    "crash": _crash,
    "restart": _restart,
}
