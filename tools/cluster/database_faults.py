"""Faults of the database: of its processes, its disks, its clock and its standby."""

import asyncio
import signal
from contextlib import suppress
from typing import ClassVar

from tools.cluster.databases import BouncedPair, Patroni, PlainPair
from tools.cluster.fault import Fault
from tools.cluster.postgres_pair import Member

_SLOW_COMMIT_US = 100_000  # The largest `commit_delay`.
_STANDBY_STOPS_S = (0.4, 0.05)  # The standby stands still, and goes on, for so long in turn.
_DATABASE_CLOCK_STEPS_S = (-2.0, -0.5, 0.5, 2.0)


class _Restart(Fault[PlainPair]):
    number: ClassVar[signal.Signals]
    lasts_s = (0.0, 3.0)

    async def do(self) -> str:
        primary = self.cluster.database.primary
        await asyncio.to_thread(primary.stop, self.number)
        return primary.name

    async def undo(self) -> None:
        await asyncio.to_thread(self.cluster.database.primary.start)


class FastRestart(_Restart):
    """PostgreSQL ends all sessions and is started again."""

    name = "db-restart-fast"
    number = signal.SIGINT


class ImmediateRestart(_Restart):
    """PostgreSQL ends at once, and recovers when it is started again."""

    name = "db-restart-immediate"
    number = signal.SIGQUIT


class FailOver(Fault[PlainPair]):
    """The primary is killed with all its processes, and the standby takes over."""

    name = "failover"

    async def do(self) -> str:
        pair = self.cluster.database
        old = pair.primary
        await asyncio.to_thread(self.end)
        await asyncio.to_thread(pair.fail_over)
        await self.wait_until_writable()
        return f"{old.name} to {pair.primary.name}"

    def end(self) -> None:
        self.cluster.database.primary.kill()

    async def undo(self) -> None:
        await asyncio.to_thread(self.cluster.database.follow)


class SwitchOver(FailOver):
    """The primary is stopped, and the standby takes over."""

    name = "switchover"

    def end(self) -> None:
        self.cluster.database.primary.stop(signal.SIGINT)


class StandbyAway(Fault[PlainPair]):
    """The standby is killed. No commit ends until it is back."""

    name = "standby-away"
    lasts_s = (2.0, 10.0)

    async def do(self) -> str:
        standby = self.cluster.database.standby
        await asyncio.to_thread(standby.kill)
        return standby.name

    async def undo(self) -> None:
        pair = self.cluster.database
        await asyncio.to_thread(pair.standby.start)
        await asyncio.to_thread(pair.wait_for_standby)


class SlowDisk(Fault[PlainPair]):
    """Every flush of the primary's log takes 0.1 s longer."""

    name = "slow-disk"
    lasts_s = (4.0, 12.0)

    async def do(self) -> str:
        primary = self.cluster.database.primary
        await asyncio.to_thread(_delay_commits, primary, _SLOW_COMMIT_US)
        return primary.name

    async def undo(self) -> None:
        await asyncio.to_thread(_delay_commits, self.cluster.database.primary, 0)


def _delay_commits(primary: Member, delay_us: int) -> None:
    # Without other transactions too, although PostgreSQL would not wait then.
    for setting in (f"commit_delay = {delay_us}", "commit_siblings = 0"):
        primary.execute(f"ALTER SYSTEM SET {setting}")
    primary.execute("SELECT pg_reload_conf()")


class SlowStandby(Fault[PlainPair]):
    """The standby stands still again and again, so commits take up to half a second."""

    name = "slow-standby"
    lasts_s = (4.0, 12.0)

    async def do(self) -> str:
        self._stopping = asyncio.create_task(self._stop_and_go())
        return self.cluster.database.standby.name

    async def undo(self) -> None:
        self._stopping.cancel()
        with suppress(asyncio.CancelledError):
            await self._stopping

    async def _stop_and_go(self) -> None:
        standby, (stopped_s, going_s) = self.cluster.database.standby, _STANDBY_STOPS_S
        try:
            while True:
                standby.signal_wal_receiver(signal.SIGSTOP)
                await asyncio.sleep(stopped_s)
                standby.signal_wal_receiver(signal.SIGCONT)
                await asyncio.sleep(going_s)
        finally:
            standby.signal_wal_receiver(signal.SIGCONT)


class DatabaseDiskFull(Fault[PlainPair]):
    """The disk of the primary is full. PostgreSQL may end because of that."""

    name = "db-disk-full"
    lasts_s = (3.0, 10.0)

    async def do(self) -> str:
        primary = self.cluster.database.primary
        await asyncio.to_thread(primary.disk.fill)
        return primary.name

    async def undo(self) -> None:
        primary = self.cluster.database.primary
        primary.disk.empty()
        if not primary.is_running:
            await asyncio.to_thread(primary.start)


class DatabaseClock(Fault[PlainPair]):
    """The clock of the database, which dates everything, is set and later set right."""

    name = "db-clock"
    lasts_s = (4.0, 10.0)

    async def do(self) -> str:
        ahead_s = self.chance.choice(_DATABASE_CLOCK_STEPS_S)
        self.clock_step_ms = abs(ahead_s) * 1000
        self.cluster.database_clock.set(ahead_s)
        return f"by {ahead_s:+.1f} s"

    async def undo(self) -> None:
        self.cluster.database_clock.set(0)


class BouncerRestart(Fault[BouncedPair]):
    """PgBouncer is killed, and started again."""

    name = "pgbouncer-restart"
    lasts_s = (0.0, 2.0)

    async def do(self) -> str:
        await asyncio.to_thread(self.cluster.database.stop_bouncer)
        return "pgbouncer"

    async def undo(self) -> None:
        await asyncio.to_thread(self.cluster.database.start_bouncer)


class PatroniSwitchOver(Fault[Patroni]):
    """Patroni is asked to make the other member the leader."""

    name = "patroni-switchover"

    async def do(self) -> str:
        database = self.cluster.database
        leader, self._new = await asyncio.to_thread(database.leader_and_other)
        await asyncio.to_thread(database.switch_over, leader, self._new)
        await self.wait_until_writable()
        return f"{leader} to {self._new}"

    async def undo(self) -> None:
        await asyncio.to_thread(self.cluster.database.wait_until_whole, self._new)


class PatroniFailOver(Fault[Patroni]):
    """The leader is killed with its Patroni, and Patroni lets the other one take over."""

    name = "patroni-failover"

    async def do(self) -> str:
        database = self.cluster.database
        self._old, self._new = await asyncio.to_thread(database.leader_and_other)
        await asyncio.to_thread(database.cluster.members[self._old].pull_the_plug)
        await self.wait_until_writable()
        return f"{self._old} to {self._new}"

    async def undo(self) -> None:
        database = self.cluster.database
        await asyncio.to_thread(database.cluster.members[self._old].start)
        await asyncio.to_thread(database.wait_until_whole, self._new)
