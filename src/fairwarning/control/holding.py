"""One at a time: whoever changes a resource of several scopes holds it meanwhile.

Each scope is a transaction of its own, so two who resize a scale set at once would both count
from the same instances. The lock is a lease (`leases.py`): its holder keeps it for as long as
it works, and one that was paused beyond its lease changes nothing more.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from fairwarning.control.context import Control
from fairwarning.control.fencing import behind
from fairwarning.control.leases import Hold, Leased
from fairwarning.control.problems import Problem
from fairwarning.core.model import Actor
from fairwarning.engine.protocols import FenceBroken, RecordChanged, StoreDown

KIND = "held"


class Lock(Leased, frozen=True, kw_only=True):
    by: str


@asynccontextmanager
async def held(control: Control, what: str, *, by: Actor) -> AsyncIterator[Control]:
    """Whoever works with the control that this yields changes nothing once the lock is lost.

    Raises Problem if somebody else has it, or has come to have it.
    """
    leases = control.leases
    before, now = await leases.store.record(KIND, what), await leases.now()
    if before is not None:
        other = msgspec.json.decode(before.body, type=Lock)
        if not leases.is_over(other, now):
            raise _busy(what, other.by)
    hold = Hold(leases, KIND, what, Lock(by=str(by)), by=by)
    try:
        await leases.take(hold, before, now)
    except RecordChanged:
        raise _busy(what, "somebody else") from None
    try:
        async with leases.kept(hold):
            yield behind(control, hold)
    except FenceBroken as broken:
        if hold.is_behind(broken):
            raise _lost(what) from None
        raise
    finally:
        # Down: it is over in a minute. Broken: it was, and somebody else has it.
        with suppress(StoreDown, FenceBroken):
            await hold.drop()


def _busy(what: str, who: str) -> Problem:
    return Problem(
        409,
        "resource-busy",
        f"{what} is just being changed by {who}; nothing was done, ask again in a moment",
        headers={"Retry-After": "1"},
    )


def _lost(what: str) -> Problem:
    return Problem(
        409,
        "lock-lost",
        f"this request was held up for so long that somebody else has taken over {what}; what it "
        "did before stays and nothing more was done, so look and ask again",
    )
