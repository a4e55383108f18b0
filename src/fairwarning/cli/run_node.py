"""Runs one node until a signal ends it, and says when the node is ready."""

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import suppress

from fairwarning.boot import BadStoreUrl
from fairwarning.cli.ready_message import Started
from fairwarning.common.garbage_collection import ShortCollections
from fairwarning.common.systemd import is_service, notify, ping_watchdog
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.node_roles import NodeRole, RolesNeedPostgres
from fairwarning.engine.protocols import Store, StoreDown
from fairwarning.node import CannotListen, Node, NodeSettings, NotOnThisMachine, TlsNeeded
from fairwarning.operator_api.own_certificate import CannotCertify
from fairwarning.operator_api.server import BadCertificate

_POLL = "/vm/{}/metadata/scheduledevents?api-version=2020-07-01"
CANNOT_START = (
    BadCertificate, BadStoreUrl, CannotCertify, CannotListen, NotOnThisMachine, Refused,
    RolesNeedPostgres, StoreDown, TlsNeeded,
)  # fmt: skip

_log = logging.getLogger(__name__)


async def run_alone(settings: NodeSettings, on_ready: Callable[[Started], None]) -> None:
    """Run a node as the only process of a service until SIGTERM or SIGINT."""
    if is_service():
        # A terminal that is closed ends the server. Under systemd, SIGHUP is a reload.
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _refuse_reload)
    pinging = asyncio.create_task(ping_watchdog())
    try:
        await run_node(settings, on_ready)
    finally:
        pinging.cancel()
        await asyncio.gather(pinging, return_exceptions=True)


def _refuse_reload() -> None:
    _log.warning("without --workers there is no reload; restart the server to read its options")


async def run_node(settings: NodeSettings, on_ready: Callable[[Started], None]) -> None:
    """Run a node until SIGTERM or SIGINT. These signals also interrupt its start."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    node = Node(settings)
    starting = asyncio.create_task(node.start())
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        # A part that is being started ends in its own time, such as a thread that opens a file.
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return
    try:
        await starting
        poll = await _example(node.store)
        ShortCollections().begin()
        on_ready(
            Started(
                metadata_urls=node.metadata_urls,
                control_url=node.control_url,
                azure_url=node.azure_url,
                azure_trouble=node.azure_trouble,
                has_starter_fleet=node.has_starter_fleet,
                has_control=NodeRole.CONTROL in settings.roles,
                poll=poll,
                clock_speed=node.clock.speed if isinstance(node.clock, VirtualClock) else None,
            )
        )
        await stopped
        notify(STOPPING="1")
    finally:
        stopped.cancel()
        await node.stop()


async def _example(store: Store) -> str | None:
    """Return the path of a poll of any instance, or None if the fleet is empty."""
    with suppress(StoreDown):  # It may have gone away again.
        for scope in await store.scopes(limit=100):
            for instance in scope.roster.live:
                return _POLL.format(instance.name)
    return None
