"""One at a time: whoever changes a resource of several scopes holds it meanwhile.

Each scope is a transaction of its own, so two who resize a scale set at once would both count
from the same instances. Times here are the wall clock's, whatever clock the fleet has.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec import Struct

from fairwarning.control.problems import Problem
from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.model import Actor
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.ports import Record, RecordChanged, Store, StoreDown

KIND = "held"
ABANDONED_MS = MINUTE_MS
"""Whoever has not let go by then has died."""


class Hold(Struct, frozen=True, kw_only=True):
    by: str
    since_ms: Instant


@asynccontextmanager
async def held(store: Store, what: str, *, by: Actor) -> AsyncIterator[None]:
    """Raises Problem if somebody else has it."""
    record = await _take(store, what, by)
    try:
        yield
    finally:
        # Down: it counts as abandoned in a minute. Changed: it was, and somebody else has it.
        with suppress(StoreDown, RecordChanged):
            await store.drop(KIND, what, expected=record.revision, by=by)


async def _take(store: Store, what: str, by: Actor) -> Record:
    now = SystemClock().now()
    before = await store.record(KIND, what)
    if before is not None:
        other = msgspec.json.decode(before.body, type=Hold)
        # One from the future was written before the clock was set back.
        if 0 <= now - other.since_ms < ABANDONED_MS:
            raise _busy(what, other.by)
    mine = msgspec.json.encode(Hold(by=str(by), since_ms=now)).decode()
    try:
        return await store.keep(KIND, what, mine, expected=before.revision if before else 0, by=by)
    except RecordChanged:
        raise _busy(what, "somebody else") from None


def _busy(what: str, who: str) -> Problem:
    return Problem(
        409,
        "resource-busy",
        f"{what} is just being changed by {who}; nothing was done, ask again in a moment",
        headers={"Retry-After": "1"},
    )
