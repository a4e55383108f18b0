"""Leases on records of the store: take and renew them, and block holders that lost theirs.

How it works. A holder writes its name and an end time into the record. While it works, it
renews the end time, so it keeps the record for as long as it needs. If the holder dies, the lease
ends, and the next caller may take the record over. A process that was only paused can't know that
this has happened. So each of its changes is stored behind a fence on the record: in the same
commit, the store checks that the process still owns the record. Safety does not depend on the
clock that decides when a lease ends. Nodes that share a store use the store's clock, because their
own clocks may differ. On a store of one process no clock is needed: a holder that is not at work
in this process is dead.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core.instants import MINUTE_MS, Instant, later
from fairwarning.core.model import Actor
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Fence, FenceBroken, Record, RecordChanged, Store, StoreDown

LEASE_MS = MINUTE_MS
RENEWAL_S = LEASE_MS / 4_000
"""The pause between renewals: a quarter of the lease, so that three of them may fail."""
AGAIN_S = 1.0  # Several tries fit into what is left of a lease.

_log = logging.getLogger(__name__)


class Leased(Struct, frozen=True, kw_only=True):
    """The fields of every record that can be leased."""

    owner: str = ""
    """The random name of the holder, new for each lease; empty if nobody holds the record."""
    until_ms: Instant = Instant(0)


L = TypeVar("L", bound=Leased)


class Leases:
    """Takes and renews leases, and knows which ones this process holds."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._wall = SystemClock()
        self._at_work: set[str] = set()

    async def now(self) -> Instant:
        """Return the time for leases: the store's if it is shared, else the real time."""
        if self.store.is_shared:
            return (await self.store.due(1)).now_ms
        return self._wall.now()

    def is_over(self, lease: Leased, now: Instant) -> bool:
        """Return whether the lease has ended, so that another holder may take the record."""
        if lease.owner in self._at_work:
            return False
        if not self.store.is_shared:
            return True
        # A lease whose end is too far in the future was written before the clock was set back.
        return not 0 < lease.until_ms - now <= LEASE_MS

    async def take(self, hold: "Hold[L]", before: Record | None, now: Instant) -> None:
        """Take the lease. The caller must then enter `kept` at once.

        Raises RecordChanged if another holder was faster.
        """
        self._at_work.add(hold.owner)
        try:
            await hold.take(before, now)
        except BaseException:
            self._at_work.discard(hold.owner)
            raise

    @asynccontextmanager
    async def kept(self, hold: "Hold[L]") -> AsyncIterator[None]:
        """Renew the lease inside the `with` block. The caller must release or drop the record."""
        renewal: asyncio.Task[None] | None = None
        if self.store.is_shared:
            renewal = asyncio.create_task(_renew(hold), name=f"lease of {hold.record.key}")
        try:
            yield
        finally:
            self._at_work.discard(hold.owner)
            if renewal is not None:
                renewal.cancel()
                await asyncio.gather(renewal, return_exceptions=True)


class Hold(Generic[L]):
    """A leased record, as its holder knows it.

    Its methods raise FenceBroken if another holder has taken the record, and StoreDown.
    """

    def __init__(self, leases: Leases, kind: str, key: str, state: L, *, by: Actor) -> None:
        self.owner = secrets.token_hex(8)
        self.state: L = replace(state, owner=self.owner)
        self.record = Record(kind=kind, key=key, revision=0, body="")
        self._leases = leases
        self._by = by
        self._turn = asyncio.Lock()
        """Held during each write to the record and each change behind its fence."""
        self._is_unsure = False
        """Whether it is unknown if the last write was stored."""

    async def take(self, before: Record | None, now: Instant) -> None:
        """Store the lease. Raises RecordChanged if the record is no longer equal to `before`."""
        self.state = replace(self.state, until_ms=later(now, LEASE_MS))
        kind, key, body = self.record.kind, self.record.key, _encoded(self.state)
        expected = 0 if before is None else before.revision
        fences = [] if before is None else [Fence(record=before)]
        try:
            self.record = await self._leases.store.keep(
                kind, key, body, expected=expected, by=self._by, fences=fences
            )
        except FenceBroken as broken:
            raise RecordChanged(str(broken)) from None

    async def renew(self) -> None:
        now = await self._leases.now()
        await self.change(until_ms=later(now, LEASE_MS))

    async def change(self, **fields: object) -> None:
        """Change fields of the state and store it. Other changes in progress are finished first."""

        async def write() -> None:
            old, state = self.record, replace(self.state, **fields)
            self._is_unsure = True
            self.record = await self._leases.store.keep(
                old.kind,
                old.key,
                _encoded(state),
                expected=old.revision,
                by=self._by,
                fences=[Fence(record=old)],
            )
            self.state, self._is_unsure = state, False

        await self._until_stored(write)

    async def known(self) -> L:
        """Return the state. It is read again if it is unknown whether the last write was stored."""
        async with self._turn:
            await self._look_again()
            return self.state

    async def drop(self) -> None:
        """Delete the record."""

        async def write() -> None:
            record = self.record
            await self._leases.store.drop(
                record.kind, record.key, by=self._by, fences=[Fence(record=record)]
            )

        await self._until_stored(write)

    @asynccontextmanager
    async def fence(self) -> AsyncIterator[Fence]:
        """Yield a fence for one change, so that it is stored only if we still own the record."""
        async with self._turn:
            await self._look_again()
            marked = self._marked()
            then = None if marked is None else _encoded(marked)
            try:
                yield Fence(record=self.record, then=then)
            except (Refused, RecordChanged, FenceBroken):
                raise  # Nothing was stored.
            except BaseException:
                self._is_unsure |= marked is not None
                raise
            if marked is not None and then is not None:
                self.state = marked
                self.record = replace(self.record, revision=self.record.revision + 1, body=then)

    def is_behind(self, broken: FenceBroken) -> bool:
        """Return whether the broken fence was the fence of this record."""
        record = broken.fence.record
        return (record.kind, record.key) == (self.record.kind, self.record.key)

    def _marked(self) -> L | None:
        """Return the state to store together with the next fenced change, or None to keep it."""
        return None

    async def _until_stored(self, write: Callable[[], Awaitable[None]]) -> None:
        async with self._turn:
            while True:
                await self._look_again()
                try:
                    return await write()
                except FenceBroken:
                    # Perhaps a cancelled write of our own changed the record, so look again.
                    self._is_unsure = True

    async def _look_again(self) -> None:
        """Read the record again if it is unknown whether the last write was stored."""
        if not self._is_unsure:
            return
        known = self.record
        record = await self._leases.store.record(known.kind, known.key)
        state = None if record is None else msgspec.json.decode(record.body, type=type(self.state))
        if record is None or state is None or state.owner != self.owner:
            raise FenceBroken(Fence(record=known))
        self.record, self.state, self._is_unsure = record, state, False


async def _renew(hold: Hold[L]) -> None:
    pause_s = RENEWAL_S
    while True:
        await asyncio.sleep(pause_s)
        try:
            await hold.renew()
            pause_s = RENEWAL_S
        except FenceBroken:
            _log.warning("%s %s was taken over", hold.record.kind, hold.record.key)
            return
        except StoreDown as outage:
            _log.info("a lease waits for the store: %s", outage)
            pause_s = AGAIN_S


def _encoded(state: Leased) -> str:
    return msgspec.json.encode(state).decode()
