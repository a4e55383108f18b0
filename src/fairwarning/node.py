"""One process of Fairwarning: engine, metadata endpoint and control plane, started in order.

What can fail is tried before anything is promised: the store is opened, the fleet read and
all addresses bound before the first request is taken. Stopping goes the other way round.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from fairwarning.boot import (
    make_control,
    make_control_app,
    make_engine,
    make_metadata_server,
    make_store,
)
from fairwarning.control.hands import resume
from fairwarning.control.housekeeping import Housekeeping
from fairwarning.control.server import ControlServer, Tls
from fairwarning.core.instants import Instant
from fairwarning.core.model import operator_actor
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.engine.ports import Clock, Store
from fairwarning.engine.service import Engine
from fairwarning.fleetfile.applying import apply, current_scopes
from fairwarning.fleetfile.model import Fleet
from fairwarning.fleetfile.plan import plan
from fairwarning.logs import log_commit
from fairwarning.metadata.identity import is_loopback
from fairwarning.metadata.limits import EndpointRules
from fairwarning.metadata.server import MetadataServer
from fairwarning.starter import STARTER_FLEET

Address = tuple[str, int]


class CannotListen(Exception):
    def __init__(self, problem: OSError, option: str) -> None:
        super().__init__(
            f"cannot listen on {problem.strerror}; choose another address with {option}"
        )


class TlsNeeded(Exception):
    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} can be reached from elsewhere, so the control plane needs TLS there: give "
            "--tls-certificate and --tls-key, or listen on 127.0.0.1"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    store_url: str
    metadata: Sequence[Address] = (("127.0.0.1", 0),)
    control: Address = ("127.0.0.1", 0)
    rules: EndpointRules = field(default_factory=EndpointRules)
    is_clock_virtual: bool = False
    tls: Tls | None = None
    fleet: Fleet | None = None
    """What the fleet is to be at the start; None leaves it as it is."""
    makes_starter_fleet: bool = True
    """In an empty store, if there is no fleet to apply."""


class Node:
    def __init__(self, settings: NodeSettings) -> None:
        host = settings.control[0]
        if not is_loopback(host) and settings.tls is None:
            raise TlsNeeded(host)
        self._settings = settings
        self._exits = contextlib.AsyncExitStack()
        self.clock: Clock = (
            VirtualClock(_this_second()) if settings.is_clock_virtual else SystemClock()
        )
        self.store: Store = make_store(
            settings.store_url, self.clock, has_own_time=settings.is_clock_virtual
        )
        self.engine: Engine = make_engine(self.store, self.clock)
        self.has_starter_fleet = False
        self.metadata_urls: list[str] = []
        self.control_url = ""

    async def start(self) -> Self:
        """Raises StoreDown, Refused or CannotListen, and then leaves nothing behind."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        await self._exits.aclose()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _start(self) -> None:
        settings, exits = self._settings, self._exits
        await self.store.open()
        exits.push_async_callback(self.store.close)
        exits.push_async_callback(self.engine.stop)
        if isinstance(self.clock, VirtualClock):
            await resume(self.clock, self.store)
        server = await self._bind_metadata()
        exits.push_async_callback(server.stop)
        self.metadata_urls = server.urls
        control = make_control(self.engine, self.store, self.engine.views, self.clock)
        needs_token = not is_loopback(settings.control[0])
        app = make_control_app(control, needs_token=needs_token, count_polls=server.count_answers)
        try:
            control_server = ControlServer(app, *settings.control, settings.tls)
        except OSError as problem:
            raise CannotListen(problem, "--control") from problem
        exits.push_async_callback(control_server.stop)
        self.control_url = control_server.url
        self.engine.observe(log_commit)
        exits.push_async_callback(control.notices.stop)
        await control.notices.start()
        exits.push_async_callback(control.rollouts.stop)
        await control.rollouts.start()
        # Not before: a declaration could start what a closed window should hold back.
        await self._set_fleet()
        await self.engine.start()
        server.start()
        housekeeping = Housekeeping(self.store, SystemClock())
        exits.push_async_callback(housekeeping.stop)
        housekeeping.start()
        await control_server.start()

    async def _bind_metadata(self) -> MetadataServer:
        try:
            return await make_metadata_server(
                self.engine, self.store, self.clock, self._settings.metadata, self._settings.rules
            )
        except OSError as problem:
            raise CannotListen(problem, "--metadata") from problem

    async def _set_fleet(self) -> None:
        fleet = self._settings.fleet
        if fleet is not None:
            planned = plan(await current_scopes(self.store), fleet, prune=True)
            await apply(self.engine, planned, force=False, by=operator_actor("fleet-file"))
        elif self._settings.makes_starter_fleet and not await self.store.scope_ids(limit=1):
            by = operator_actor("starter")
            await self.engine.declare(STARTER_FLEET, by=by, why="the store was empty")
            self.has_starter_fleet = True


def _this_second() -> Instant:
    return Instant(int(time.time()) * 1000)
