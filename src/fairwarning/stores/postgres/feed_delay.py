"""Watches how long the change feed is held back, and names the transaction that holds it back.

Any transaction that writes, in any database of the server, holds back what is committed after it
began (`journal.py`). Ours last milliseconds. One of another program may last for hours, and then
the stream, notifications and the history are late without any error.
"""

import asyncio
import logging
from typing import Any

from fairwarning.common.escape import one_line
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.postgres.database import Database, run
from fairwarning.stores.postgres.signals import end
from fairwarning.stores.statements import Statement

LOOK_EVERY_S = 2.0  # Soon enough to notice a delay of WARN_S.
WARN_S = 5.0
"""A delay that is longer than this is logged. Our own transactions last milliseconds."""
WARN_AGAIN_S = 60.0  # More lines would hide others.
_log = logging.getLogger(__name__)


class FeedDelay:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None
        self._warned_s: float | None = None
        """When the delay was last logged, or None if there is none."""
        self.delay_s = 0.0
        """How long the oldest entry that is held back has waited. It is 0 if none is."""

    @property
    def trouble(self) -> str:
        """The delay in words. It is empty if there is none that is worth a warning."""
        if self.delay_s < WARN_S:
            return ""
        return (
            f"a long transaction holds back the stream, notifications and the history for "
            f"{self.delay_s:.0f} s; the log names it"
        )

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="feed delay")

    async def close(self) -> None:
        if self._task is not None:
            await end(self._task)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except StoreDown:
                # The outage is reported by others.
                continue
            except Exception:
                _log.exception("watching the change feed stumbled and goes on")

    async def look(self) -> None:
        """Measure the delay, and log it if it is long. Raises StoreDown."""
        async with self._database.connection() as connection:
            found = await run(connection, [Statement("held_back_ms", {})])
            self.delay_s = max(found["held_back_ms"][0][0], 0) / 1000
            if self.delay_s < WARN_S:
                if self._warned_s is not None:
                    _log.info("the change feed is no longer held back")
                self._warned_s = None
                return
            now_s = asyncio.get_running_loop().time()
            if self._warned_s is not None and now_s - self._warned_s < WARN_AGAIN_S:
                return
            self._warned_s = now_s
            holders = (await run(connection, [Statement("feed_holders", {})]))["feed_holders"]
        _log.warning(
            "the stream, notifications and the history are held back for %.0f s by %s; end it, or "
            "wait until it ends",
            self.delay_s,
            " and ".join(map(described, holders)) or "a transaction that has just ended",
        )


def described(holder: Any) -> str:
    """Returns a row of `feed_holders` in words."""
    name, application, user, database, age_s = holder
    parts = [
        f"application {application!r}" if application else "",
        f"user {user}" if user else "",
        f"database {database}" if database else "",
        f"open for {age_s} s" if age_s is not None else "",
    ]
    return one_line(f"a transaction of another program ({', '.join(filter(None, [name, *parts]))})")
