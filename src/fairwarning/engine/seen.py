"""Notes in the store which scopes are asked for, so that idle ones can be told from others.

Polls only set a flag. Now and then the flags become one write, often enough that the grace
of the idle rule covers the delay.
"""

import logging

from fairwarning.core.instants import later
from fairwarning.core.limits import Timing
from fairwarning.engine.ports import Clock, Store, StoreDown
from fairwarning.engine.views import Views

_log = logging.getLogger(__name__)


class SeenNotes:
    def __init__(self, store: Store, clock: Clock, views: Views, timing: Timing) -> None:
        self._store = store
        self._clock = clock
        self._views = views
        self._every_ms = max(timing.idle_grace_ms // 3, 1)
        self._alarm = clock.alarm()

    async def run(self) -> None:
        try:
            while True:
                await self._alarm.wait(later(self._clock.now(), self._every_ms))
                await self.write()
        finally:
            self._alarm.close()

    async def write(self) -> None:
        asked = [view for view in self._views.asked() if view.activated_ms is not None]
        if not asked:
            return
        now = self._clock.now()
        for view in asked:
            view.is_asked = False
        try:
            await self._store.note_seen({view.scope_id: now for view in asked})
        except StoreDown as outage:
            _log.warning("could not note who asked, trying again later: %s", outage)
            for view in asked:
                view.is_asked = True
