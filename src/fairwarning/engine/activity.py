"""This module writes to the store which scopes get requests, so that idle scopes are recognised.

A poll only sets a flag. From time to time all flags are written at once, often enough that the
grace of the idle rule covers the delay.
"""

import asyncio
import logging

from fairwarning.core.limits import Timing
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Alarm, Clock, Store, StoreDown
from fairwarning.engine.scope_view import View

_log = logging.getLogger(__name__)


class SeenNotes:
    def __init__(self, store: Store, clock: Clock, views: Views, timing: Timing) -> None:
        self._store = store
        self._clock = clock
        self._views = views
        self._every_ms = max(timing.idle_grace_ms // 3, 1)
        self._noted: list[View] = []
        """The views that the last call of `write` has noted in the store."""
        self._alarm: Alarm | None = None

    def start(self) -> asyncio.Task[None]:
        alarm = self._alarm = self._clock.alarm()
        task = asyncio.create_task(self._run(alarm), name="seen notes")
        task.add_done_callback(lambda _: alarm.close())
        return task

    async def _run(self, alarm: Alarm) -> None:
        while True:
            await alarm.pause(self._every_ms)
            try:
                await self.write()
            except StoreDown as outage:
                _log.warning("could not note who asked, trying again later: %s", outage)
            except Exception:
                _log.exception("could not note who asked, trying again later")

    def repeat(self) -> None:
        """Write the last notes again at once, because the store may have lost them."""
        for view in self._noted:
            view.is_asked = True
        if self._alarm is not None:
            self._alarm.ring()

    async def write(self) -> None:
        asked = [view for view in self._views.asked() if view.activated_ms is not None]
        if not asked:
            self._noted = []
            return
        for view in asked:
            # Reset it before writing, so that a request during the write is noted the next time.
            view.is_asked = False
        try:
            # Use the clock of the store, because idle time is counted by it too.
            now = (await self._store.due(1)).now_ms
            await self._store.note_seen({view.scope_id: now for view in asked})
        except BaseException:
            for view in asked:
                view.is_asked = True
            raise
        self._noted = asked
