"""A hypervisor in memory, with guests that obey, ignore or lose what they are asked."""

from collections import Counter
from dataclasses import dataclass, field

from msgspec.structs import replace

from fairwarning.drivers.libvirt.host import Ask, Disk, Domain, Host, NoDomain, State
from fairwarning.drivers.libvirt.records import Record
from fairwarning.engine.protocols import DriverFailed

UUID = "6f1d8c6e-0000-4000-8000-000000000001"


@dataclass
class FakeHost:
    """It has at most one domain, called web-0."""

    uri: str = "test:///one"
    domain: Domain | None = field(
        default_factory=lambda: Domain(uuid=UUID, name="web-0", state=State.RUNNING, run_id=1)
    )
    obeys: set[Ask | str] = field(default_factory=set)
    """What the guest does: restart for each way of asking, or `stop`."""
    boot: str = ""
    """The boot id that the guest's agent answers, or "" if there is no agent."""
    calls: list[str] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)
    """The calls that fail, and why."""
    images: set[str] = field(default_factory=lambda: {"p/clean"})
    restarts: Counter[str] = field(default_factory=Counter)

    async def look(self, handle: str) -> Domain:
        if self.domain is None or handle not in {self.domain.name, self.domain.uuid}:
            raise NoDomain(f"the hypervisor has no domain {handle!r}")
        return self.domain

    def change(self, **values: object) -> None:
        assert self.domain is not None
        self.domain = replace(self.domain, **values)

    async def remember(self, domain: Domain, record: Record) -> None:
        now = await self.look(domain.uuid)
        self.change(records={**now.records, record.key: record})

    async def forget(self, domain: Domain, key: str) -> None:
        now = await self.look(domain.uuid)
        self.change(records={k: each for k, each in now.records.items() if k != key})

    def note(self, call: str) -> None:
        self.calls.append(call)
        if call in self.fails:
            raise DriverFailed(self.fails[call])

    async def suspend(self, domain: Domain) -> None:
        self.note("suspend")
        self.change(state=State.PAUSED)

    async def resume(self, domain: Domain) -> None:
        self.note("resume")
        self.change(state=State.RUNNING)

    async def start(self, domain: Domain) -> None:
        self.note("start")
        self.change(state=State.RUNNING, run_id=7)
        self.boot = self.boot and f"{self.boot}+"

    async def destroy(self, domain: Domain) -> None:
        self.note("destroy")
        self.change(state=State.OFF, run_id=-1)

    async def ask_to_stop(self, domain: Domain, *, with_agent: bool) -> None:
        self.note("stop by agent" if with_agent else "stop")
        if "stop" in self.obeys:
            self.change(state=State.OFF, run_id=-1)

    async def ask_to_restart(self, domain: Domain, how: Ask) -> None:
        self.note(how)
        if how in self.obeys:
            self.restarts[domain.uuid] += 1
            self.boot = self.boot and f"{self.boot}+"

    async def boot_id(self, domain: Domain) -> str:
        return self.boot

    def restarts_seen(self, domain: Domain) -> int:
        return self.restarts[domain.uuid]

    async def undefine(self, domain: Domain) -> None:
        self.note("undefine")
        self.domain = None

    async def delete_volume(self, disk: Disk) -> None:
        self.note(f"delete {disk.target}")

    async def empty_volume(self, disk: Disk) -> None:
        self.note(f"empty {disk.target}")

    async def has_volume(self, base: str) -> bool:
        return base in self.images

    async def copy_volume(self, base: str, disk: Disk) -> None:
        self.note(f"copy {base} to {disk.target}")

    async def migrate(self, domain: Domain, other: Host) -> None:
        assert isinstance(other, FakeHost)
        self.note("migrate")
        other.domain, self.domain = await self.look(domain.uuid), None
