"""Runs one node until a signal ends it, and says when the node is ready."""

import asyncio
import signal
from collections.abc import Callable

from fairwarning.boot import BadStoreUrl
from fairwarning.cli.garbage import ShortCollections
from fairwarning.cli.ready_message import Started
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store, StoreDown
from fairwarning.node import CannotListen, Node, NodeSettings, NotOnThisMachine, TlsNeeded
from fairwarning.operator_api.own_certificate import CannotCertify
from fairwarning.operator_api.server import BadCertificate

_POLL = "/vm/{}/metadata/scheduledevents?api-version=2020-07-01"
CANNOT_START = (
    BadCertificate, BadStoreUrl, CannotCertify, CannotListen, NotOnThisMachine, Refused, StoreDown,
    TlsNeeded,
)  # fmt: skip


async def run_node(settings: NodeSettings, on_ready: Callable[[Started], None]) -> None:
    """Run a node until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with Node(settings) as node:
        poll = await _example(node.store)
        ShortCollections().begin()
        on_ready(
            Started(
                metadata_urls=node.metadata_urls,
                control_url=node.control_url,
                azure_url=node.azure_url,
                azure_trouble=node.azure_trouble,
                has_starter_fleet=node.has_starter_fleet,
                poll=poll,
                clock_speed=node.clock.speed if isinstance(node.clock, VirtualClock) else None,
            )
        )
        await stopping.wait()


async def _example(store: Store) -> str | None:
    """Return the path of a poll of any instance, or None if the fleet is empty."""
    for scope in await store.scopes(limit=100):
        for instance in scope.roster.live:
            return _POLL.format(instance.name)
    return None
