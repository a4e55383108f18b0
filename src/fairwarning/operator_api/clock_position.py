"""Stores the time of a virtual clock, so that a restart does not set it back."""

import msgspec

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store

KIND, KEY = "clock", "virtual"


async def resume(clock: VirtualClock, store: Store) -> None:
    """Set the clock to the stored time, if that is later than the clock's time."""
    newest = await store.history(limit=1)
    position = max([await load(store), *(entry.at_ms for entry in newest)])
    clock.step(max(0, position - clock.now()))


async def load(store: Store) -> Instant:
    """Return the stored time, or 0 if none is stored."""
    record = await store.record(KIND, KEY)
    return Instant(msgspec.json.decode(record.body, type=int) if record else 0)


async def save(now: Instant, store: Store, *, by: Actor) -> None:
    await store.keep(KIND, KEY, msgspec.json.encode(now).decode(), by=by)
