"""Where a virtual clock stands, kept in the store, so that a restart does not turn it back."""

import msgspec

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store

KIND, KEY = "clock", "virtual"


async def keep(now: Instant, store: Store, *, by: Actor) -> None:
    await store.keep(KIND, KEY, msgspec.json.encode(now).decode(), by=by)


async def kept(store: Store) -> Instant:
    """0 if none was kept."""
    record = await store.record(KIND, KEY)
    return Instant(msgspec.json.decode(record.body, type=int) if record else 0)


async def resume(clock: VirtualClock, store: Store) -> None:
    """Goes on where the store left off, if that is later than now."""
    newest = await store.history(limit=1)
    stood = max([await kept(store), *(entry.at_ms for entry in newest)])
    clock.step(max(0, stood - clock.now()))
