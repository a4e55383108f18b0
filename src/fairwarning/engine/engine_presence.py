"""Nodes with the role engine say that they are running, and the other nodes notice if none is.

Theory of operation. Every node with the role engine changes one record from time to time. A node
without that role reads the record. If its revision has not changed for a while, no engine is
running. Only the watching node's own clock counts, so no clocks need to agree.
"""

import asyncio
import logging

from fairwarning.core.model import ENGINE
from fairwarning.engine.protocols import Record, Store, StoreDown

BEAT_S = 5.0
"""The time between two changes of the record, and between two looks at it."""
SILENT_S = 20.0
"""How long the record may stay the same. A busy store may delay some changes."""
KIND, KEY = "engine-presence", "running"
NO_ENGINE = "no node with the role engine is running, so events are started late when one is back"

_log = logging.getLogger(__name__)


class EngineBeats:
    """Says that a node with the role engine is running."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._run(), name="engine beats")

    async def _run(self) -> None:
        while True:
            await self.beat()
            await asyncio.sleep(BEAT_S)

    async def beat(self) -> None:
        try:
            await self._store.keep(KIND, KEY, "{}", by=ENGINE)
        except StoreDown:
            return  # Others say in the log that the store is down.


class EngineWatch:
    """Notices on a node without the role engine whether any node has it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: Record | None = None
        self._changed_s: float | None = None
        self.is_running = True
        """Whether an engine is running. It is True at the start, until the record shows something
        else.
        """

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._run(), name="engine watch")

    async def _run(self) -> None:
        while True:
            await self.look(asyncio.get_running_loop().time())
            await asyncio.sleep(BEAT_S)

    async def look(self, now_s: float) -> None:
        """Read the record, and log if the last engine has gone or the first one is back."""
        try:
            found = await self._store.record(KIND, KEY)
        except StoreDown:
            self._changed_s = None  # While the store is away, nobody can change the record.
            return
        has_changed = found is not None and found != self._last
        self._last = found
        if self._changed_s is None or has_changed:
            self._changed_s = now_s
        if has_changed and not self.is_running:
            self.is_running = True
            _log.warning("a node with the role engine is running again")
        elif now_s - self._changed_s > SILENT_S and self.is_running:
            self.is_running = False
            _log.warning(NO_ENGINE)
