"""Tells listeners of other nodes' commits by polling the journal, while no signals arrive.

A commit may become visible later than one with a higher transaction number. So each look begins at
the lowest number that was still under way at the look before, and leaves out what was seen there.
"""

import asyncio
import logging

from fairwarning.engine.protocols import Signal, StoreDown
from fairwarning.stores.listeners import Listeners
from fairwarning.stores.postgres.database import Database, run
from fairwarning.stores.postgres.signals import POLL_S, end
from fairwarning.stores.statements import Statement

OUTAGE_PAUSE_S = 0.5  # Short enough to go on soon after an outage, and no busy loop.
_log = logging.getLogger(__name__)


class CommitPoll:
    def __init__(self, database: Database, listeners: Listeners, is_deaf: asyncio.Event) -> None:
        """The journal is polled only while `is_deaf` is set."""
        self._database = database
        self._listeners = listeners
        self._is_deaf = is_deaf
        self._from_xid: int | None = None
        """The lowest transaction number that may still commit, or None before the first look."""
        self._seen: set[tuple[int, int]] = set()
        """The entries of transactions from `_from_xid` on that listeners know already."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="commits polled")

    async def close(self) -> None:
        if self._task is not None:
            await end(self._task)

    async def _run(self) -> None:
        while True:
            # A connection that was just made is mostly heard before the first look.
            await asyncio.sleep(POLL_S)
            if not self._is_deaf.is_set():
                self._from_xid = None
                await self._is_deaf.wait()
                continue
            try:
                await self.look()
            except StoreDown:
                await asyncio.sleep(OUTAGE_PAUSE_S)
            except Exception:
                _log.exception("polling the journal stumbled and goes on")
                await asyncio.sleep(OUTAGE_PAUSE_S)

    async def look(self) -> None:
        """Tells the listeners of each commit since the last look. The first look only finds out
        where to begin.
        """
        statements = [Statement("journal_end", {})]
        if self._from_xid is not None:
            statements.append(Statement("commits", {"from_xid": self._from_xid}))
        async with self._database.connection() as connection:
            found = await run(connection, statements)
        ((last_ended,),) = found["journal_end"]
        rows = found.get("commits", [])
        changed = {
            scope_id: deadline
            for xid, seq, scope_id, deadline in rows
            if (xid, seq) not in self._seen
        }
        for scope_id, deadline in changed.items():
            self._listeners.tell(Signal(scope_id=scope_id, next_deadline_ms=deadline))
        self._from_xid = last_ended + 1
        self._seen = {(xid, seq) for xid, seq, *_ in rows if xid > last_ended}
