"""Readers of the change feed: each takes down what it hears, from some position on."""

import asyncio
from collections.abc import AsyncGenerator

from fairwarning.engine.protocols import Entry


class FeedReader:
    def __init__(self, node: str, changes: AsyncGenerator[Entry, None], *, begin: int) -> None:
        self.node = node
        self.begin = begin
        """So many entries lie before what it is to hear."""
        self.heard: list[Entry] = []
        self.is_over = False
        self._changes = changes
        self._task = asyncio.create_task(self._run(), name=f"feed reader of {node}")

    async def _run(self) -> None:
        async for entry in self._changes:
            self.heard.append(entry)

    def broken(self) -> BaseException | None:
        """What ended it, if anything did: a feed never ends by itself."""
        if self.is_over or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception() or AssertionError("the change feed ended")

    def stop(self) -> None:
        """Its node is gone."""
        self.is_over = True

    def leave(self) -> None:
        self.is_over = True
        self._task.cancel()
