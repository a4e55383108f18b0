"""Steps for tests that care about the store and not about the rules."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairwarning.core.commands import Tick
from fairwarning.core.decide import Change, decide
from fairwarning.core.lifecycle import fold
from fairwarning.core.model import Scope, ScopeId
from fairwarning.core.transitions import PolicyChanged
from fairwarning.engine.protocols import Moment
from fairwarning.stores.sqlite import SqliteStore
from tests.stores.fleet import ME


def changing(scope: Scope, moment: Moment) -> Change:
    """A transition that is never refused."""
    transitions = (PolicyChanged(policy=scope.roster.policy),)
    return Change(scope=fold(scope, transitions), transitions=transitions, next_deadline_ms=None)


@asynccontextmanager
async def busy_writer(store: SqliteStore, scope_id: ScopeId) -> AsyncIterator[None]:
    """The writer's thread is inside a step for as long as this lasts."""
    store._inline_commits._left = 1  # else the step would block the event loop
    loop, inside, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def step(scope: Scope, moment: Moment) -> Change:
        loop.call_soon_threadsafe(inside.set)
        go_on.wait()
        return decide(scope, Tick(), moment.now_ms)

    holder = asyncio.create_task(store.transact(scope_id, step, by=ME))
    await inside.wait()
    try:
        yield
    finally:
        go_on.set()
        await holder
