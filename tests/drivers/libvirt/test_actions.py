"""What the driver does to a domain, with a hypervisor in memory whose guests do not always obey."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NoReturn

import pytest
from msgspec.structs import replace

from fairwarning.core.driver_settings import DriverSettings
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventType, EvictionPolicy, OperationKind
from fairwarning.drivers.libvirt import driver as driver_module
from fairwarning.drivers.libvirt import settings as settings_module
from fairwarning.drivers.libvirt.driver import LibvirtDriver
from fairwarning.drivers.libvirt.host import Ask, Disk, Domain, State
from fairwarning.drivers.libvirt.records import KEPT_MAX, Record, Step
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import DriverFailed, Found, Order
from tests.drivers.libvirt.fake_host import UUID, FakeHost
from tests.drivers.orders import HeldLease, order

ONE = {"uri": "test:///one"}
BOTH = {**ONE, "other_uri": "test:///two"}


@pytest.fixture(autouse=True)
def hosts(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeHost]:
    found = {"test:///one": FakeHost(), "test:///two": FakeHost(uri="test:///two", domain=None)}
    monkeypatch.setattr(driver_module, "make_host", lambda uri, _: found[uri])
    known = settings_module.SETTINGS
    usable = DriverSettings(driver=known.driver, settings=known.settings)
    monkeypatch.setattr(settings_module, "SETTINGS", usable)
    return found


@pytest.fixture
def host(hosts: dict[str, FakeHost]) -> FakeHost:
    return hosts["test:///one"]


def impact(
    type: EventType,
    settings: Mapping[str, str] = ONE,
    *,
    attempt: int = 1,
    operation: OperationKind | None = None,
    eviction: EvictionPolicy = EvictionPolicy.DEALLOCATE,
) -> Order:
    asked = order(settings, attempt=attempt, operation=operation)
    instance = replace(asked.instances[1], name=asked.instances[0].name, eviction=eviction)
    return replace(asked, type=type, instances=(instance,))


async def do(asked: Order, clock: VirtualClock | None = None) -> None:
    """Carries out the order on a node of its own, while time passes as fast as it can."""
    clock = clock or VirtualClock()
    alarm = clock.alarm()
    driver = LibvirtDriver(clock)
    work = asyncio.create_task(driver.do(asked, alarm, HeldLease()))
    work.add_done_callback(lambda _: alarm.close())
    while not work.done():
        await clock.advance(250)
        await asyncio.sleep(0)
    await work


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110  (each turn of the loop lets the others go on)
        await asyncio.sleep(0)


async def found(asked: Order) -> Found:
    return await LibvirtDriver(VirtualClock()).find(asked)


async def test_a_frozen_domain_goes_on_when_its_time_is_over(host: FakeHost) -> None:
    clock = VirtualClock()
    asked = impact(EventType.FREEZE)
    assert await found(asked) is Found.UNKNOWN
    began = clock.now()
    await do(asked, clock)
    assert host.calls == ["suspend", "resume"]
    assert 30_000 <= clock.now() - began < 32_000
    assert await found(asked) is Found.DONE
    await do(asked)
    assert host.calls == ["suspend", "resume"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Step.DONE, Step.DONE, Found.DONE),
        (Step.DONE, Step.SEEN, Found.RUNNING),
        (Step.SEEN, Step.ACTED, Found.RUNNING),
        (Step.SEEN, Step.SEEN, Found.UNKNOWN),
    ],
)
async def test_an_impact_on_two_domains_is_done_when_both_are(
    first: Step, second: Step, expected: Found, hosts: dict[str, FakeHost]
) -> None:
    asked = order(BOTH)
    instances = tuple(replace(each, handle="") for each in asked.instances)
    one, two = hosts.values()
    two.domain = Domain(uuid=UUID[:-1] + "2", name="web-1", state=State.RUNNING, run_id=1)
    for host, step in ((one, first), (two, second)):
        host.change(records={asked.key: Record(key=asked.key, attempt=1, step=step)})
    assert await found(replace(asked, instances=instances)) is expected


async def test_another_node_resumes_what_a_dead_one_has_frozen(host: FakeHost) -> None:
    clock = VirtualClock()
    asked = impact(EventType.FREEZE)
    until = Instant(clock.now() + 9_000)
    acted = Record(key=asked.key, attempt=1, step=Step.ACTED, until_ms=until)
    host.change(state=State.PAUSED, records={asked.key: acted})
    later = replace(asked, attempt=2, may_be_under_way=True)
    assert await found(later) is Found.RUNNING
    await do(later, clock)
    assert host.calls == ["resume"]
    assert until <= clock.now() < until + 2_000


@pytest.mark.parametrize(
    ("step", "state", "calls"),
    [
        (Step.BEGUN, State.RUNNING, ["suspend", "resume"]),
        (Step.BEGUN, State.PAUSED, ["resume"]),
        (Step.ACTED, State.RUNNING, []),
    ],
)
async def test_a_freeze_goes_on_where_it_ended(
    step: Step, state: State, calls: list[str], host: FakeHost
) -> None:
    asked = impact(EventType.FREEZE, attempt=2)
    host.change(state=state, records={asked.key: Record(key=asked.key, attempt=1, step=step)})
    await do(asked)
    assert host.calls == calls
    assert await found(asked) is Found.DONE


async def test_a_server_that_stops_leaves_no_domain_frozen(host: FakeHost) -> None:
    clock = VirtualClock()
    asked = impact(EventType.FREEZE)
    alarm = clock.alarm()
    work = asyncio.create_task(LibvirtDriver(clock).do(asked, alarm, HeldLease()))
    await until(lambda: host.calls == ["suspend"])
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert host.calls == ["suspend", "resume"]
    await do(replace(asked, attempt=2))
    assert host.calls == ["suspend", "resume"]


async def test_a_domain_that_a_later_attempt_left_frozen_when_it_was_done_goes_on(
    host: FakeHost,
) -> None:
    """This node froze the domain after the later attempt had noted that the impact is over."""
    clock = VirtualClock()
    asked = impact(EventType.FREEZE)
    work = asyncio.create_task(do(asked, clock))
    await until(lambda: host.calls == ["suspend"])
    host.change(records={asked.key: Record(key=asked.key, attempt=2, step=Step.DONE)})
    with pytest.raises(DriverFailed, match="attempt 2 was seen already"):
        await work
    assert host.calls == ["suspend", "resume"]


@pytest.mark.parametrize(("duration_s", "expected_ms"), [(0, 0), (3, 3_000), (-1, 5_000)])
async def test_a_domain_is_frozen_as_long_as_the_event_says(
    duration_s: int, expected_ms: int, host: FakeHost
) -> None:
    clock = VirtualClock()
    began = clock.now()
    await do(replace(impact(EventType.FREEZE), duration_s=duration_s), clock)
    assert host.calls == ["suspend", "resume"]
    assert expected_ms <= clock.now() - began < expected_ms + 2_000


@pytest.mark.parametrize(
    ("state", "says"), [(State.OFF, "it is off"), (State.PAUSED, "somebody paused it before")]
)
async def test_only_a_running_domain_is_frozen(state: State, says: str, host: FakeHost) -> None:
    host.change(state=state)
    with pytest.raises(DriverFailed, match=says):
        await do(impact(EventType.FREEZE))
    assert host.calls == []


async def test_a_lower_attempt_is_refused(host: FakeHost) -> None:
    assert await found(impact(EventType.FREEZE, attempt=2)) is Found.UNKNOWN
    with pytest.raises(DriverFailed, match="attempt 2 was seen already"):
        await do(impact(EventType.FREEZE))
    assert host.calls == []


async def test_an_attempt_that_is_overtaken_does_nothing_more(host: FakeHost) -> None:
    clock = VirtualClock()
    asked = impact(EventType.FREEZE)
    work = asyncio.create_task(do(asked, clock))
    await until(lambda: host.calls == ["suspend"])
    assert host.domain is not None
    taken = Record(key=asked.key, attempt=2, step=Step.ACTED, until_ms=clock.now() + 60_000)
    host.change(records={asked.key: taken})
    with pytest.raises(DriverFailed, match="attempt 2 was seen already"):
        await work
    assert host.calls == ["suspend"]


@pytest.mark.parametrize(
    ("obeys", "calls"),
    [
        (Ask.AGENT, ["agent"]),
        (Ask.ACPI, ["agent", "acpi"]),
        (Ask.RESET, ["agent", "acpi", "reset"]),
    ],
)
async def test_each_way_to_restart_is_tried_until_one_is_seen_to_work(
    obeys: Ask, calls: list[str], host: FakeHost
) -> None:
    host.obeys = {obeys}
    await do(impact(EventType.REBOOT))
    assert host.calls == calls


async def test_a_guest_that_ignores_everything_is_a_failure(host: FakeHost) -> None:
    with pytest.raises(DriverFailed, match=r"ignored it \(agent 10 s, acpi 60 s, reset 30 s\)"):
        await do(impact(EventType.REBOOT))
    assert host.calls == ["agent", "acpi", "reset"]
    assert await found(impact(EventType.REBOOT)) is Found.RUNNING


async def test_a_way_that_does_not_exist_is_passed_over(host: FakeHost) -> None:
    host.obeys, host.fails = {Ask.ACPI}, {Ask.AGENT: "there is no agent"}
    await do(impact(EventType.REBOOT))
    assert host.calls == ["agent", "acpi"]


async def test_a_restart_is_over_when_the_guest_is_up_again(host: FakeHost) -> None:
    host.obeys, host.boot = {Ask.AGENT}, "b1"
    clock = VirtualClock()
    restart = host.ask_to_restart

    async def slow_boot(domain: object, how: Ask) -> None:
        assert host.domain is not None
        await restart(host.domain, how)
        host.boot = ""

    host.ask_to_restart = slow_boot  # type: ignore[method-assign]
    work = asyncio.create_task(do(impact(EventType.REBOOT), clock))
    began = clock.now()
    await until(lambda: clock.now() >= began + 5_000)
    assert not work.done()
    host.boot = "b2"
    await work


async def test_a_guest_that_does_not_come_up_is_a_failure(host: FakeHost) -> None:
    host.obeys, host.boot = {Ask.AGENT}, "b1"
    restart = host.ask_to_restart

    async def no_boot(domain: object, how: Ask) -> None:
        assert host.domain is not None
        await restart(host.domain, how)
        host.boot = ""

    host.ask_to_restart = no_boot  # type: ignore[method-assign]
    with pytest.raises(DriverFailed, match="its guest agent does not answer after 300 s"):
        await do(impact(EventType.REBOOT))
    # The next attempt does not restart it once more.
    host.boot = "b2"
    await do(impact(EventType.REBOOT, attempt=2))
    assert host.calls == ["agent"]


async def test_a_guest_that_is_booting_is_waited_for_after_a_dead_attempt(host: FakeHost) -> None:
    """Its agent answered before the restart, so it will say what became of it."""
    asked = impact(EventType.REBOOT, attempt=2)
    record = Record(
        key=asked.key, attempt=1, step=Step.ACTED, run_id=1, asked="agent", boot_id="b1"
    )
    host.change(records={asked.key: record})
    answers = iter(["", "", "b2"])

    async def boot_id(domain: object) -> str:
        return next(answers, "b2")

    host.boot_id = boot_id  # type: ignore[method-assign]
    await do(asked)
    assert host.calls == []


async def test_a_restart_that_nobody_can_have_seen_is_not_repeated(host: FakeHost) -> None:
    asked = impact(EventType.REBOOT, attempt=2)
    record = Record(key=asked.key, attempt=1, step=Step.ACTED, run_id=1, asked="acpi")
    host.change(records={asked.key: record})
    with pytest.raises(DriverFailed, match="nobody can know whether it did; look at it"):
        await do(asked)
    assert host.calls == []


@pytest.mark.parametrize(("boot", "calls"), [("b2", []), ("b1", ["agent"])])
async def test_the_boot_id_says_whether_a_restart_happened(
    boot: str, calls: list[str], host: FakeHost
) -> None:
    asked = impact(EventType.REBOOT, attempt=2)
    record = Record(
        key=asked.key, attempt=1, step=Step.ACTED, run_id=1, boot_id="b1", asked="agent"
    )
    host.change(records={asked.key: record})
    host.boot, host.obeys = boot, {Ask.AGENT}
    await do(asked)
    assert host.calls == calls


async def test_a_domain_that_is_off_is_started_by_a_restart(host: FakeHost) -> None:
    host.change(state=State.OFF, run_id=-1)
    await do(impact(EventType.REBOOT))
    assert host.calls == ["start"]


async def test_the_last_way_to_restart_stops_and_starts(host: FakeHost) -> None:
    host.obeys = {"stop"}
    await do(impact(EventType.REBOOT, {**ONE, "restart_by": "reset restart"}))
    assert host.calls == ["reset", "stop by agent", "start"]


async def test_a_redeploy_moves_to_the_other_host(hosts: dict[str, FakeHost]) -> None:
    await do(impact(EventType.REDEPLOY, BOTH))
    assert hosts["test:///one"].calls == ["migrate"]
    assert hosts["test:///two"].domain is not None
    assert await found(impact(EventType.REDEPLOY, BOTH)) is Found.DONE


async def test_a_domain_that_was_moved_is_not_moved_back(hosts: dict[str, FakeHost]) -> None:
    asked = impact(EventType.REDEPLOY, BOTH, attempt=2)
    moved = Record(key=asked.key, attempt=1, step=Step.BEGUN, run_id=1, asked="test:///one")
    one, two = hosts.values()
    one.change(records={asked.key: moved})
    one.domain, two.domain = None, one.domain
    await do(asked)
    assert one.calls == two.calls == []
    assert await found(asked) is Found.DONE


VOLUMES = (Disk(target="vda", pool="p", volume="root"), Disk(target="vdb", pool="p", volume="tmp"))


async def test_without_another_host_a_redeploy_empties_the_volatile_disks(host: FakeHost) -> None:
    host.change(disks=VOLUMES)
    await do(impact(EventType.REDEPLOY, {**ONE, "volatile": "vdb"}))
    assert host.calls == ["stop by agent", "stop", "destroy", "empty vdb", "start"]


async def test_a_reimage_copies_the_base_image(host: FakeHost) -> None:
    host.change(disks=VOLUMES)
    host.obeys = {"stop"}
    asked = impact(EventType.REBOOT, {**ONE, "base": "p/clean"}, operation=OperationKind.REIMAGE)
    await do(asked)
    assert host.calls == ["stop by agent", "copy p/clean to vda", "start"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (ONE, "set `base` of the driver"),
        ({**ONE, "base": "p/none"}, "there is no volume p/none"),
        ({**ONE, "base": "p/clean", "root": "sda"}, "no disk 'sda'"),
    ],
)
async def test_what_a_reimage_lacks_is_said_before_the_domain_is_stopped(
    settings: Mapping[str, str], says: str, host: FakeHost
) -> None:
    with pytest.raises(DriverFailed, match=says):
        await do(impact(EventType.REBOOT, settings, operation=OperationKind.REIMAGE))
    assert host.calls == []


async def test_a_volatile_disk_that_is_missing_is_said_before_the_domain_is_stopped(
    host: FakeHost,
) -> None:
    with pytest.raises(DriverFailed, match="no disk 'vdx'"):
        await do(impact(EventType.REDEPLOY, {**ONE, "volatile": "vdx"}))
    assert host.calls == []


@pytest.mark.parametrize("state", [State.OFF, State.RUNNING])
async def test_a_stop_and_start_goes_on_where_it_ended(state: State, host: FakeHost) -> None:
    """Off: the node died in between. Running with another number: it died after the start."""
    asked = impact(EventType.REDEPLOY, attempt=2)
    begun = Record(key=asked.key, attempt=1, step=Step.BEGUN, run_id=1, asked="test:///one")
    host.change(state=state, run_id=2 if state is State.RUNNING else -1, records={asked.key: begun})
    await do(asked)
    assert host.calls == ([] if state is State.RUNNING else ["start"])


async def test_a_transient_domain_is_not_stopped_to_start_it_again(host: FakeHost) -> None:
    host.change(is_persistent=False)
    with pytest.raises(DriverFailed, match="is transient"):
        await do(impact(EventType.REDEPLOY))
    assert host.calls == []


@pytest.mark.parametrize(
    ("type", "eviction"),
    [
        (EventType.TERMINATE, EvictionPolicy.DEALLOCATE),
        (EventType.PREEMPT, EvictionPolicy.DELETE),
    ],
)
async def test_a_deleted_domain_leaves_no_volume(
    type: EventType, eviction: EvictionPolicy, host: FakeHost
) -> None:
    host.change(disks=VOLUMES)
    asked = impact(type, eviction=eviction)
    await do(asked)
    assert host.calls == ["destroy", "delete vda", "delete vdb", "undefine"]
    later = replace(asked, attempt=2)
    assert await found(later) is Found.DONE
    await do(later)


async def test_the_first_attempt_at_a_domain_that_does_not_exist_fails(host: FakeHost) -> None:
    host.domain = None
    with pytest.raises(DriverFailed, match="no domain 'web-1'"):
        await do(replace(impact(EventType.TERMINATE), instances=order(ONE).instances[1:]))


@pytest.mark.parametrize(
    ("operation", "state", "calls"),
    [
        (OperationKind.START, State.OFF, ["start"]),
        (OperationKind.START, State.RUNNING, []),
        (OperationKind.STOP, State.RUNNING, ["stop by agent", "stop", "destroy"]),
        (OperationKind.DEALLOCATE, State.OFF, []),
    ],
)
async def test_power(
    operation: OperationKind, state: State, calls: list[str], host: FakeHost
) -> None:
    host.change(state=state)
    await do(impact(EventType.POWER, operation=operation))
    assert host.calls == calls


async def test_an_evicted_domain_that_is_kept_is_stopped(host: FakeHost) -> None:
    host.obeys = {"stop"}
    await do(impact(EventType.PREEMPT))
    assert host.calls == ["stop by agent"]
    assert host.domain is not None


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        ("undefined", "web-0 was undefined during the impact"),
        ("replaced", f"its UUID was {UUID} and is other"),
        ("forgotten", "somebody removed the record of this impact"),
        ("stopped", "libvirt: domain is not running"),
    ],
)
async def test_a_domain_that_is_changed_behind_our_back_is_a_clear_failure(
    happens: str, says: str, host: FakeHost
) -> None:
    suspend = host.suspend

    async def meddle(domain: object) -> None:
        match happens:
            case "undefined":
                host.domain = None
            case "replaced":
                host.change(uuid="other")
            case "forgotten":
                host.change(records={})
            case _:
                host.change(state=State.OFF)
        raise DriverFailed("libvirt: domain is not running")

    host.suspend = meddle  # type: ignore[method-assign]
    with pytest.raises(DriverFailed, match=says):
        await do(impact(EventType.FREEZE))
    host.suspend = suspend  # type: ignore[method-assign]


async def test_a_domain_whose_metadata_is_damaged_does_not_stay_frozen(host: FakeHost) -> None:
    suspend = host.suspend

    async def damaged(handle: str) -> NoReturn:
        raise DriverFailed("the domain's metadata was changed")

    async def damage(domain: Domain) -> None:
        await suspend(domain)
        host.look = damaged  # type: ignore[method-assign]

    host.suspend = damage  # type: ignore[method-assign]
    with pytest.raises(DriverFailed, match="metadata was changed"):
        await do(impact(EventType.FREEZE))
    assert host.calls == ["suspend", "resume"]


async def test_old_keys_are_forgotten(host: FakeHost) -> None:
    many = {
        f"k{n}": Record(key=f"k{n}", attempt=1, step=Step.DONE, at_ms=n) for n in range(KEPT_MAX)
    }
    host.change(records=many)
    asked = impact(EventType.POWER, operation=OperationKind.START)
    await do(asked)
    assert host.domain is not None
    assert set(host.domain.records) == {*many, asked.key} - {"k0"}


async def test_several_domains_are_frozen_at_the_same_time(
    hosts: dict[str, FakeHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    one = hosts["test:///one"]
    asked = impact(EventType.FREEZE)
    missing = replace(asked.instances[0], handle="nobody")
    both = replace(asked, instances=(asked.instances[0], missing))
    with pytest.raises(DriverFailed, match="no domain 'nobody'"):
        await do(both, clock)
    assert one.calls == ["suspend", "resume"]
