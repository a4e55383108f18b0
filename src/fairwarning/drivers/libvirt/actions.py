"""What each type of impact does to a domain. Each can go on where an earlier attempt ended."""

from collections.abc import Awaitable, Callable

from fairwarning.core.model import EventType, EvictionPolicy, Instance, OperationKind
from fairwarning.drivers.libvirt.host import Ask, Disk, Domain, NoDomain, State
from fairwarning.drivers.libvirt.impact import LOOK_MS, Impact, finish
from fairwarning.drivers.libvirt.records import Step
from fairwarning.drivers.libvirt.settings import RESTART
from fairwarning.engine.protocols import DriverFailed, Order

FREEZE_S = 5
"""How long a domain is frozen if the event does not say."""

Action = Callable[[Impact], Awaitable[None]]


def deletes(order: Order, instance: Instance) -> bool:
    """Return whether the impact is over when the domain is gone."""
    is_deleted = instance.eviction is EvictionPolicy.DELETE
    return order.type is EventType.TERMINATE or (order.type is EventType.PREEMPT and is_deleted)


def action_for(order: Order, instance: Instance) -> Action:
    match order.type:
        case EventType.FREEZE:
            return freeze
        case EventType.REBOOT if order.operation is OperationKind.REIMAGE:
            return reimage
        case EventType.REBOOT:
            return reboot
        case EventType.REDEPLOY:
            return redeploy
        case EventType.POWER if order.operation is OperationKind.START:
            return power_on
        case EventType.TERMINATE | EventType.PREEMPT if deletes(order, instance):
            return delete
        case _:
            return power_off


async def freeze(impact: Impact) -> None:
    domain = await impact.look()
    if impact.record.step is Step.ACTED and domain.state is State.RUNNING:
        return  # It went on; only the note of that is missing.
    if domain.state not in {State.RUNNING, State.PAUSED}:
        raise DriverFailed(f"{impact.name} cannot be frozen, because it is {domain.state.value}")
    if domain.state is State.PAUSED and impact.record.step is Step.SEEN:
        raise DriverFailed(f"{impact.name} cannot be frozen, because somebody paused it before")
    if impact.record.step is not Step.ACTED:
        await impact.write(Step.BEGUN)
    try:
        await impact.act(impact.host.suspend, State.PAUSED)
        await _hold(impact)
    finally:
        # Also if the server stops. A domain that is left frozen would be the worst of all.
        await finish(_thaw(impact))


async def _hold(impact: Impact) -> None:
    await impact.look()
    if impact.record.step is not Step.ACTED:
        asked_s = impact.order.duration_s
        lasts_ms = (asked_s if asked_s >= 0 else FREEZE_S) * 1000
        await impact.write(Step.ACTED, until_ms=impact.ends_ms(lasts_ms))
    while impact.clock.now() < impact.record.until_ms:
        await impact.alarm.pause(impact.record.until_ms - impact.clock.now())


async def _thaw(impact: Impact) -> None:
    """Resume the domain. If a higher attempt has it now, that one resumes it, unless it is done."""
    try:
        domain = await impact.host.look(impact.domain.uuid)
    except NoDomain:
        return
    except DriverFailed:
        # Its metadata was damaged, for example. To resume it too early does the least harm.
        await impact.host.resume(impact.domain)
        return
    found = domain.records.get(impact.order.key)
    is_ours = found is None or found.attempt <= impact.order.attempt or found.step is Step.DONE
    if not is_ours or domain.state is not State.PAUSED:
        return
    if impact.record.step is Step.BEGUN:
        # It was cancelled right after it was frozen. The next attempt must not freeze it again.
        await impact.write(Step.ACTED)
    await impact.host.resume(domain)


async def reboot(impact: Impact) -> None:
    domain = await impact.look()
    if impact.is_new and domain.state is not State.RUNNING:
        await _restart_stopped(impact)
        return
    if impact.is_new:
        boot_id = await impact.host.boot_id(domain)
        await impact.write(Step.BEGUN, run_id=domain.run_id, boot_id=boot_id)
    elif not await _goes_on(impact):
        await _comes_up(impact)
        return
    tried = []
    for way in impact.settings.restart_by:
        if way == RESTART:
            await _power_cycle(impact, _nothing)
            await _comes_up(impact)
            return
        how = Ask(way)
        if await _asks(impact, how):
            await _comes_up(impact)
            return
        tried.append(f"{way} {impact.settings.ask_s(how):g} s")
    raise DriverFailed(f"{impact.name} was asked to restart and ignored it ({', '.join(tried)})")


async def _goes_on(impact: Impact) -> bool:
    """Return whether the domain has still to be restarted, after an earlier attempt had begun.
    Raises DriverFailed if nobody can know.
    """
    domain, record = impact.domain, impact.record
    if domain.state is State.OFF or domain.run_id != record.run_id:
        return domain.state is State.OFF
    if not record.asked:
        return True
    if record.boot_id:
        # While the guest boots, its agent is silent. It answered before, so it will again.
        boot_id = await _answer(impact, but_not="")
        if boot_id:
            return boot_id == record.boot_id
    raise DriverFailed(
        f"{impact.name} was asked to restart ({record.asked}) by an attempt that ended early, and "
        "without a guest agent nobody can know whether it did; look at it"
    )


async def _asks(impact: Impact, how: Ask) -> bool:
    """Ask the guest to restart, and return whether it was seen to do so in time."""
    before = impact.host.restarts_seen(impact.domain)
    await impact.look()
    await impact.write(Step.ACTED, asked=how.value)
    try:
        await impact.host.ask_to_restart(impact.domain, how)
    except NoDomain:
        raise
    except DriverFailed:
        return False  # There is no agent, for example. The next way may work.

    def has_restarted(domain: Domain) -> bool:
        is_other_run = domain.run_id not in {-1, impact.record.run_id}
        return is_other_run or impact.host.restarts_seen(domain) > before

    return await impact.becomes(has_restarted, impact.settings.ask_s(how))


async def _comes_up(impact: Impact) -> None:
    """Wait until the guest is up again: its agent answers, if it did before the impact."""
    within_s = impact.settings.seconds["boot_time"]
    if not await impact.becomes(lambda domain: domain.state is State.RUNNING, within_s):
        raise DriverFailed(f"{impact.name} was restarted, and is {impact.domain.state.value} now")
    if impact.record.boot_id and not await _answer(impact, but_not=impact.record.boot_id):
        raise DriverFailed(
            f"{impact.name} was restarted, and its guest agent does not answer after {within_s:g} s"
        )


async def _answer(impact: Impact, *, but_not: str) -> str:
    """Return the boot id that the guest agent names, or "" if it names none but `but_not` in the
    time that the guest may take to come up.
    """
    ends_ms = impact.clock.steady_ms() + round(impact.settings.seconds["boot_time"] * 1000)
    while (boot_id := await impact.host.boot_id(impact.domain)) in {"", but_not}:
        if impact.clock.steady_ms() >= ends_ms:
            return ""
        await impact.alarm.pause(LOOK_MS)
    return boot_id


async def _restart_stopped(impact: Impact) -> None:
    if impact.domain.state is not State.OFF:
        raise DriverFailed(
            f"{impact.name} cannot be restarted, because it is {impact.domain.state.value}"
        )
    await impact.write(Step.BEGUN, run_id=-1)
    await impact.act(impact.host.start, State.RUNNING)


async def redeploy(impact: Impact) -> None:
    domain = await impact.look()
    other = impact.other
    if impact.is_new:
        await impact.write(Step.BEGUN, run_id=domain.run_id, asked=impact.host.uri)
    if impact.record.asked != impact.host.uri:
        return  # An earlier attempt has moved it.
    if other is not None and domain.state is State.RUNNING:
        await impact.host.migrate(domain, other)
        impact.host = other
        await impact.look()
        return

    # All of them are looked up before the domain is stopped.
    disks = [_disk(impact, target) for target in impact.settings.volatile]

    async def empty_disks() -> None:
        for disk in disks:
            await impact.host.empty_volume(disk)

    await _power_cycle(impact, empty_disks)


async def reimage(impact: Impact) -> None:
    settings = impact.settings
    domain = await impact.look()
    if not settings.base:
        raise DriverFailed("no image is known; set `base` of the driver to POOL/VOLUME")
    if not await impact.host.has_volume(settings.base):
        raise DriverFailed(f"there is no volume {settings.base}, which `base` of the driver names")
    disk = _disk(impact, settings.root or (domain.disks[0].target if domain.disks else "vda"))
    if impact.is_new:
        await impact.write(Step.BEGUN, run_id=domain.run_id)

    async def copy_image() -> None:
        await impact.host.copy_volume(settings.base, disk)

    await _power_cycle(impact, copy_image)


async def power_on(impact: Impact) -> None:
    if impact.is_new:
        await impact.write(Step.BEGUN)
    await impact.act(impact.host.start, State.RUNNING)


async def power_off(impact: Impact) -> None:
    if impact.is_new:
        await impact.write(Step.BEGUN)
    await _stop(impact)


async def delete(impact: Impact) -> None:
    if impact.is_new:
        await impact.write(Step.BEGUN)
    if (await impact.look()).state is not State.OFF:
        await impact.act(impact.host.destroy, State.OFF)
    for disk in impact.domain.disks:
        await impact.host.delete_volume(disk)
    # Last, because the record of the impact goes with it.
    await impact.look()
    await impact.host.undefine(impact.domain)


async def _power_cycle(impact: Impact, while_off: Callable[[], Awaitable[None]]) -> None:
    """Stop the domain, do something, and start it, unless it was started since the impact began."""
    domain = await impact.look()
    if not domain.is_persistent:
        raise DriverFailed(f"{impact.name} is transient, so it would be gone once it is stopped")
    if domain.state is not State.OFF:
        if domain.run_id != impact.record.run_id:
            return
        await _stop(impact)
    await while_off()
    await impact.act(impact.host.start, State.RUNNING)


async def _stop(impact: Impact) -> None:
    """Ask the guest to shut down, and pull the plug if it does not."""
    if (await impact.look()).state is State.OFF:
        return
    stop_s = impact.settings.seconds["stop_time"]
    for with_agent in (True, False):
        try:
            await impact.host.ask_to_stop(impact.domain, with_agent=with_agent)
        except NoDomain:
            raise
        except DriverFailed:
            continue
        if await impact.becomes(lambda domain: domain.state is State.OFF, stop_s / 2):
            return
    await impact.act(impact.host.destroy, State.OFF)


def _disk(impact: Impact, target: str) -> Disk:
    for disk in impact.domain.disks:
        if disk.target == target:
            return disk
    raise DriverFailed(f"{impact.name} has no disk {target!r} that is a volume or a file")


async def _nothing() -> None:
    return
