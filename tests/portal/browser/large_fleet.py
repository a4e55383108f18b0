"""A fleet of 10,000 instances with events of many types in many states, to look at."""

from fairwarning.core.commands import Approve, Cancel, Command, Schedule
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import EventId, EventType, InstanceName, ScopeId
from fairwarning.core.resources import AvailabilitySet, Member, Place, ScaleSet, VirtualMachine
from tests.operator_api.rig import ME, Rig

SETS = 80
MEMBERS = 100
SCALE_SETS = 2
CAPACITY = 1_000
TYPES = (EventType.REBOOT, EventType.FREEZE, EventType.REDEPLOY)


async def grow(rig: Rig) -> None:
    """Add 10,000 instances: availability sets, scale sets of ten placement groups, and VMs."""
    place = Place(test=True)
    await rig.node.engine.declare(
        [
            *(
                AvailabilitySet(
                    name=f"shop{number}",
                    members=tuple(Member(name=f"shop{number}-{n}") for n in range(MEMBERS)),
                    update_domains=5,
                    place=place,
                )
                for number in range(SETS)
            ),
            *(
                ScaleSet(
                    name=f"fleet{number}",
                    capacity=CAPACITY,
                    terminate_notice_ms=10 * MINUTE_MS,
                    place=place,
                )
                for number in range(SCALE_SETS)
            ),
            *(VirtualMachine(name=f"single{number}", place=place) for number in range(40)),
        ],
        by=ME,
    )


async def keep_busy(rig: Rig) -> None:
    """Add events that ended, that are under way, that are approved, and that await approval."""
    for number in range(SETS // 2):
        id = await _announce(rig, number, minutes=15 + number)
        if number % 3 == 0:
            await _submit(rig, number, Cancel(event_id=id, reason="moved by hand"))
        else:
            await _submit(rig, number, Approve(event_id=id, by=ME))
    await rig.post("/clock/advance", {"by": "10m"})
    for number in range(SETS):
        id = await _announce(rig, number, minutes=15 + 13 * number, lasts_s=3_600)
        if number % 2:
            await _submit(rig, number, Approve(event_id=id, by=ME))
    for name in ("fleet0_3", "fleet0_4"):
        await rig.post(f"/instances/{name}/delete", {}, 202)
    await rig.post("/instances/single3/stop", {}, 202)
    await rig.post("/rollouts", {"type": "Freeze", "scopes": ["fleet1"], "name": "hosts"}, 201)
    await rig.post("/rollouts", {"type": "Reboot", "scopes": [], "name": "kernel"}, 201)


async def _announce(rig: Rig, number: int, *, minutes: int, lasts_s: int | None = None) -> EventId:
    id = rig.node.engine.new_id()
    command = Schedule(
        event_id=id,
        type=TYPES[number % len(TYPES)],
        targets=tuple(InstanceName(f"shop{number}-{n}") for n in range(0, MEMBERS, 5)),
        notice_ms=minutes * MINUTE_MS,
        duration_s=lasts_s,
        description="Host server is undergoing maintenance.",
    )
    await _submit(rig, number, command)
    return id


async def _submit(rig: Rig, number: int, command: Command) -> None:
    (member,) = rig.node.engine.views.by_name(f"shop{number}-0")
    await rig.node.engine.submit(ScopeId(member.view.scope_id), command, by=ME)
