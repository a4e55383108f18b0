"""Makes the store of a world: the reference store, or a real database with the world's clock."""

import tempfile
from contextlib import ExitStack
from copy import copy
from itertools import count
from pathlib import Path
from typing import Any

from fairwarning.engine.protocols import Clock, Store
from fairwarning.simulation.clock import SimClock
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.writer import InlineCommits

_schemas = count(1)


class SharedMemoryStore(MemoryStore):
    """The reference store, but it says that other nodes may write to it too."""

    @property
    def is_shared(self) -> bool:
        return True


class StoreCopy:
    """A copy of a reference store at one moment."""

    _NOT_CONTENT = ("_clock", "_listeners")

    def __init__(self, store: MemoryStore) -> None:
        self._content: dict[str, Any] = {
            name: copy(value)
            for name, value in vars(store).items()
            if name not in self._NOT_CONTENT
        }

    def put_back(self, store: MemoryStore) -> None:
        vars(store).update({name: copy(value) for name, value in self._content.items()})


class StorePlace:
    """The kind of store that worlds use. It creates and removes a store for each world."""

    def __init__(self, url: str = "memory") -> None:
        """`url` is `memory`, `sqlite` for temporary files, or `postgresql://…` for new schemas."""
        self._url = url

    @property
    def is_memory(self) -> bool:
        return self._url == "memory"

    @property
    def may_be_shared(self) -> bool:
        return self._url != "sqlite"

    async def open(
        self, clock: SimClock, exits: ExitStack, *, is_shared: bool, quick: bool
    ) -> Store:
        """Opens a store that `exits` removes. With `quick`, SQLite commits in the event loop."""
        if self.is_memory:
            return SharedMemoryStore(clock) if is_shared else MemoryStore(clock)
        if not self.may_be_shared:
            folder = exits.enter_context(tempfile.TemporaryDirectory(prefix="fw-sim-"))
            inline = InlineCommits(after=0) if quick else InlineCommits()
            store: Store = SqliteStore(Path(folder) / "store.db", clock, inline)
        else:
            store = _postgres(self._url, clock, exits, is_shared=is_shared)
        await store.open()
        return store


def _postgres(dsn: str, clock: Clock, exits: ExitStack, *, is_shared: bool) -> Store:
    # Imported here, because psycopg takes a sixth of a second to load and few worlds need it.
    import psycopg  # noqa: PLC0415
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    from fairwarning.stores.postgres import PostgresStore  # noqa: PLC0415

    class SharedPostgresStore(PostgresStore):
        """A store with a clock of its own that can still count as shared."""

        @property
        def is_shared(self) -> bool:
            return is_shared

    schema = f"simulation_{next(_schemas)}"

    def execute(statement: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    execute(f"CREATE SCHEMA {schema}")
    exits.callback(execute, f"DROP SCHEMA {schema} CASCADE")
    return SharedPostgresStore(make_conninfo(dsn, options=f"-c search_path={schema}"), clock)
