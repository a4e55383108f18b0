"""Tells the other nodes that this one runs, and notices when the schema becomes newer.

Each node has a row in the table `nodes` and renews it every few seconds. A migration that would
harm a node looks there first. The row is only a courtesy: a node that was paused, and so looked
stopped, is kept from writing by the server, which checks each of its transactions.
"""

import asyncio
import logging
import os
import socket
from contextlib import suppress

from fairwarning import __version__
from fairwarning.engine.protocols import SchemaTooNew, StoreDown
from fairwarning.stores.migrations import Schema, refuse_outdated
from fairwarning.stores.postgres.database import Database, run
from fairwarning.stores.statements import Statement, Value

NOTE_EVERY_S = 5.0
"""How often a node renews its row: a few times within `RUNNING_S` of `migrations.py`."""
FORGET_AFTER_S = 24 * 3_600
"""Rows of nodes that ended without removing them are deleted after this time."""
CLOSE_S_MAX = 1.0
"""How long `close` may take to remove the row."""
_log = logging.getLogger(__name__)


class NodeRegistry:
    """Keeps the row of one node up to date, from `open` to `close`."""

    def __init__(self, database: Database, newest: int, name: str) -> None:
        """`newest` is the newest schema that this program knows."""
        self._database = database
        self._newest = newest
        self._name = name
        self._logged = 0
        """The newest schema that was logged because this node does not know it."""
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Adds the row. Raises StoreDown, or SchemaTooNew if this node may not write."""
        await self.note()
        self._task = asyncio.create_task(self._renew(), name="node registry")

    async def close(self) -> None:
        """Removes the row, so that nobody waits for a node that has ended."""
        if self._task is None:
            return
        while not self._task.done():  # Python 3.11 can lose a cancellation.
            self._task.cancel()
            await asyncio.wait([self._task], timeout=0.1)
        with suppress(StoreDown, TimeoutError):
            async with asyncio.timeout(CLOSE_S_MAX), self._database.connection() as connection:
                await run(connection, [Statement("forget_node", {"name": self._name})])

    async def note(self) -> None:
        """Renews the row, and reads the schema. Raises StoreDown or SchemaTooNew."""
        values: dict[str, Value] = {
            "name": self._name, "host": socket.gethostname(), "pid": os.getpid(),
            "program": __version__, "schema": self._newest,
        }  # fmt: skip
        async with self._database.connection() as connection:
            found = await run(
                connection,
                [
                    Statement("note_node", values),
                    Statement("forget_nodes", {"after_s": FORGET_AFTER_S}),
                    Statement("schema_state", {}),
                ],
            )
        ((version, program, floor),) = found["schema_state"]
        self._check(Schema(version=version, floor=floor, program=program or ""))

    def _check(self, schema: Schema) -> None:
        """Logs a schema that this node does not know. Raises SchemaTooNew if it may not write."""
        try:
            refuse_outdated(self._newest, schema, "the database")
        except SchemaTooNew as problem:
            self._database.log_outdated(problem)
            raise
        if schema.version > max(self._newest, self._logged):
            self._logged = schema.version
            _log.info(
                "the database has schema %d, made by fairwarning %s; this node knows up to %d, and "
                "goes on",
                schema.version,
                schema.program,
                self._newest,
            )

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(NOTE_EVERY_S)
            # `_check` logs what is wrong with the schema, and an outage is logged by many others.
            with suppress(StoreDown):
                await self.note()
