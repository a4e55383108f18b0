"""A shutdown of the host waits behind a lock until the VM is drained, and is undone after it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairwarning.agent import host_shutdown
from fairwarning.agent.clock import Clock
from fairwarning.agent.config.model import Approve, Config, Phase, Rule, When
from fairwarning.agent.host_shutdown import (
    DESCRIPTION,
    NO_PACKAGE,
    HostShutdown,
    Login,
    NoLogind,
    connect_logind,
    too_short,
)
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.records import Record
from fairwarning.agent.runner import Runner
from fairwarning.agent.state_file import StateFile
from fairwarning.client.changes import Seen
from tests.agent.values import ME, NOW, World, action, config
from tests.support.patience import HANG_S

DRAIN = Rule(
    name="drain",
    types=("Reboot",),
    scheduled=(action("a", timeout_s=60),),
    started=(action("s", timeout_s=60, retries=1),),
    finished=(action("f", has_undo=False),),
    cancelled=(action("c", has_undo=False),),
)


class SilentService:
    """A service that has never answered: a shutdown of the host needs none."""

    has_answered = False

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.approved: list[str] = []

    async def follow(self) -> None:
        await asyncio.Event().wait()

    async def approve(self, *event_ids: str) -> None:
        self.approved += event_ids

    async def report(self, event_id: str) -> tuple[str, ...]:
        return ()

    async def waiting(self, event_id: str) -> tuple[str, ...]:
        return ()


class Logind:
    """A logind that the test tells what to do. It outlives agents."""

    def __init__(self) -> None:
        self.delay_s = 60.0
        self.is_preparing = False
        self.trouble = ""
        self._closed = asyncio.Event()
        self.is_connected = False
        self._locks: list[int] = []
        self._on_signal: Callable[[], None] = lambda: None

    @property
    def is_locked(self) -> bool:
        return any(not _is_closed(each) for each in self._locks)

    def shut_down(self) -> None:
        self.is_preparing = True
        self._on_signal()

    def call_off(self) -> None:
        self.is_preparing = False
        self._on_signal()

    def lose(self) -> None:
        """Ends the connection to the bus."""
        self._closed.set()

    async def connect(self, on_signal: Callable[[], None]) -> Login:
        if self.trouble:
            raise NoLogind(self.trouble)
        self._on_signal = on_signal
        self._closed.clear()
        self.is_connected = True
        return self

    async def inhibit(self, why: str) -> int:
        read, write = os.pipe()
        os.set_blocking(read, False)
        self._locks.append(read)
        return write

    async def delay_max_s(self) -> float:
        return self.delay_s

    async def is_shutting_down(self) -> bool:
        return self.is_preparing

    async def wait_closed(self) -> None:
        await self._closed.wait()

    def close(self) -> None:
        self.is_connected = False


def _is_closed(read: int) -> bool:
    try:
        return os.read(read, 1) == b""
    except BlockingIOError:
        return False


class Host:
    """One VM: its disk, its actions and its logind outlive its agent."""

    def __init__(self, folder: Path, settings: Config) -> None:
        self.world = World()
        self.logind = Logind()
        self.config = settings
        self._path = folder / "state.json"
        self.runner: Runner
        self.service: SilentService
        self.shutdown: HostShutdown

    @contextlib.asynccontextmanager
    async def agent(self) -> AsyncIterator[None]:
        state = StateFile(self._path)
        memory = state.open()
        self.service = SilentService(memory.seen)
        clock = Clock(lambda: datetime.now(UTC))
        self.runner = Runner(
            config=self.config,
            me=ME,
            service=self.service,
            clock=clock,
            state=state,
            memory=memory,
            handler_of=lambda _: self.world,
            metrics=Metrics(),
        )
        self.shutdown = HostShutdown(self.runner, clock, self.logind.connect)
        try:
            async with self.shutdown.following():
                running = asyncio.create_task(self.runner.run())
                yield
                self.runner.stop()
                await running
        finally:
            state.close()

    @property
    def record(self) -> Record:
        (record,) = self.runner.memory.records.values()
        return record

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not condition():  # noqa: ASYNC110  The lock is a file, which has no event.
                await asyncio.sleep(0.01)

    async def until_calm(self) -> None:
        await self.until(lambda: not self.runner.memory.records)


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(host_shutdown, "RETRY_S", 0.01)
    return Host(tmp_path, config(DRAIN))


async def test_a_shutdown_waits_for_the_drain_and_the_next_start_undoes_it(host: Host) -> None:
    host.world.hanging.add("s")
    async with host.agent():
        assert host.logind.is_locked
        host.logind.shut_down()
        await host.until(lambda: host.world.history == ["a", "s"])
        assert host.logind.is_locked, "released before the drain was done"
        assert (host.record.event.description, host.record.phase) == (DESCRIPTION, Phase.STARTED)
        assert host.service.approved == []
    host.world.hanging.clear()
    async with host.agent():
        await host.until(lambda: "s" in host.world.history[2:])
        await host.until(lambda: not host.logind.is_locked)
        assert host.world.history == ["a", "s", "s"]
        said = host.shutdown.status
        host.logind.trouble = "the bus ends with the host"
        host.logind.lose()
        await host.until(lambda: not host.logind.is_connected)
        assert host.shutdown.status == said, "a warning in the middle of a shutdown"
    host.logind.trouble = ""
    host.logind.is_preparing = False
    async with host.agent():
        await host.until_calm()
        assert host.world.history[3:] == ["uns", "una", "f"]
        assert host.logind.is_locked


async def test_the_lock_is_released_when_all_is_drained_and_taken_again_when_called_off(
    host: Host,
) -> None:
    async with host.agent():
        for _ in range(2):
            host.world.history.clear()
            host.logind.shut_down()
            await host.until(lambda: not host.logind.is_locked)
            assert host.world.history == ["a", "s"]
            host.logind.call_off()
            await host.until_calm()
            await host.until(lambda: host.logind.is_locked)
            assert host.world.history == ["a", "s", "uns", "una", "f"]


async def test_a_shutdown_that_is_called_off_while_draining_is_cancelled(host: Host) -> None:
    host.world.hanging.add("a")
    async with host.agent():
        host.logind.shut_down()
        await host.until(lambda: host.world.history == ["a"])
        host.logind.call_off()
        await host.until_calm()
        assert host.world.history == ["a", "una", "c"]
        assert host.logind.is_locked


@pytest.mark.parametrize("when", [When.NEVER, When.SUCCESS])
async def test_a_failed_drain_and_an_approval_that_never_comes_hold_nothing_up(
    host: Host, when: When
) -> None:
    host.config = config(replace(DRAIN, approve=Approve(when=when)))
    host.world.failing.add("a")
    async with host.agent():
        host.logind.shut_down()
        await host.until(lambda: not host.logind.is_locked)
        assert host.world.history == ["a", "s"]


async def test_what_takes_longer_than_logind_waits_is_cut_off(host: Host) -> None:
    host.logind.delay_s = 0.4
    host.world.hanging.add("a")
    async with host.agent():
        host.logind.shut_down()
        await host.until(lambda: not host.logind.is_locked)
        assert host.record.action_states["scheduled/0"].why.startswith("cut off")


async def test_no_rule_means_no_wait(host: Host) -> None:
    host.config = config(replace(DRAIN, types=("Freeze",)))
    async with host.agent():
        assert "no rule fits a Reboot of this VM" in host.shutdown.status
        host.logind.shut_down()
        await host.until(lambda: not host.logind.is_locked)
    assert host.world.history == []


async def test_an_agent_that_starts_in_the_middle_of_a_shutdown_does_nothing(host: Host) -> None:
    host.logind.is_preparing = True
    async with host.agent():
        assert not host.logind.is_locked
        assert not host.runner.memory.records
        host.logind.call_off()
        await host.until(lambda: host.logind.is_locked)
    assert host.world.history == []


async def test_a_logind_that_is_not_there_is_said_and_asked_again(host: Host) -> None:
    host.logind.trouble = "systemd-logind does not run here"
    async with host.agent():
        assert host.shutdown.status == (
            "a shutdown of the host does not wait for the drain: systemd-logind does not run here"
        )
        host.logind.trouble = ""
        await host.until(lambda: host.logind.is_locked)
        assert host.shutdown.status.startswith("a shutdown of the host waits for the drain")
        host.logind.trouble = "gone"
        host.logind.lose()
        await host.until(lambda: host.shutdown.status.endswith(": gone"))
        host.logind.trouble = ""
        await host.until(lambda: "waits for the drain" in host.shutdown.status)
        host.logind.shut_down()
        await host.until(lambda: host.world.history == ["a", "s"])


async def test_without_dbus_fast_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_shutdown, "is_available", lambda: False)
    with pytest.raises(NoLogind, match="pip install"):
        await connect_logind(lambda: None)
    assert "fairwarning-client[logind]" in NO_PACKAGE


def test_a_wait_that_is_shorter_than_the_time_outs_is_warned_of() -> None:
    assert too_short(config(DRAIN), ME, NOW, 180) == ""
    found = too_short(config(DRAIN), ME, NOW, 5)
    assert "wait 5 s (InhibitDelayMaxSec)" in found
    assert "rule 'drain' may take 3 min" in found
