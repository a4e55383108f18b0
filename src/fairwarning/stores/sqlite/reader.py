"""Reads on a connection and a thread of their own, so that none waits for a commit."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from fairwarning.stores.sqlite.connection import Handle, store_down

T = TypeVar("T")


class Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = Handle(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"reader of {path.name}")

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """All that the query sees is of one instant."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, query)

    async def stop(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._handle.discard)
        self._thread.shutdown()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._handle.get()
            connection.execute("BEGIN")
            try:
                return query(connection)
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._handle.discard()
            raise store_down(error, self._path) from error
