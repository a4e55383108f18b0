"""A server for one rehearsal: on a virtual clock, in memory, gone when the rehearsal is over."""

import threading
from types import TracebackType
from typing import Any, Self

from fairwarning.core.commands import Activate
from fairwarning.core.model import ENGINE
from fairwarning.fleet_file import Fleet, read_json
from fairwarning.metadata.request_watchers import Asked
from fairwarning.node import Node, NodeSettings
from fairwarning.testing.server_thread import Background

SCOPES_MAX = 1_000


class PrivateServer:
    def __init__(self, fleet: dict[str, Any] | None, metadata: tuple[str, int]) -> None:
        """`fleet` None: the starter fleet. Raises what starting a node raises."""
        self._polled = threading.Event()
        self._background = Background()
        try:
            wanted = None if fleet is None else read_json(fleet)
            self._node = self._background.call(self._start(wanted, metadata))
        except BaseException:
            self._background.stop()
            raise
        self.url = self._node.metadata_urls[0]
        self.control_url = self._node.control_url
        self.names = self._background.call(self._names())
        """Of all instances."""

    def wait_for_poll(self) -> None:
        """Returns when somebody has asked for a document."""
        self._polled.wait()

    def stop(self) -> None:
        try:
            self._background.call(self._node.stop())
        finally:
            self._background.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.stop()

    async def _start(self, fleet: Fleet | None, metadata: tuple[str, int]) -> Node:
        settings = NodeSettings(
            store_url="memory:", metadata=[metadata], is_clock_virtual=True, fleet=fleet
        )
        node = await Node(settings).start()
        # Somebody always looks in a rehearsal, so that what owners ask is announced.
        for scope_id in await node.store.scope_ids(limit=SCOPES_MAX):
            await node.engine.submit(scope_id, Activate(), by=ENGINE)
        node.watch(self._on_asked)
        return node

    async def _names(self) -> list[str]:
        scopes = await self._node.store.scopes(limit=SCOPES_MAX)
        return [str(each.name) for scope in scopes for each in scope.roster.live]

    def _on_asked(self, asked: Asked) -> None:
        if asked.kind == "events":
            self._polled.set()
