"""Where a virtual clock stands, kept in the store, so that a restart does not turn it back."""

import msgspec

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.ports import Store

KIND, KEY = "clock", "virtual"


async def keep(clock: VirtualClock, store: Store, *, by: Actor) -> None:
    await store.keep(KIND, KEY, msgspec.json.encode(clock.now()).decode(), by=by)


async def resume(clock: VirtualClock, store: Store) -> None:
    """Goes on where the store left off, if that is later than now."""
    record = await store.record(KIND, KEY)
    newest = await store.history(limit=1)
    stood = [Instant(msgspec.json.decode(record.body, type=int))] if record else []
    stood += [entry.at_ms for entry in newest]
    clock.step(max(0, max(stood, default=clock.now()) - clock.now()))
