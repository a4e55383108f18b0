"""A node is one process of Fairwarning. Its roles say which parts it has: the metadata endpoint,
the engine that starts things, and the control plane.

At the start, everything that can fail comes first: the node opens the store, binds all addresses
and reads the fleet before it accepts the first request. It waits for a store that is away. It
stops its parts in the reverse order.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from fairwarning import boot
from fairwarning.core.instants import Instant
from fairwarning.core.model import ENGINE, operator_actor
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.clocks import Pacer, SystemClock, VirtualClock
from fairwarning.engine.engine_presence import EngineBeats
from fairwarning.engine.node_roles import ALL_ROLES, NodeRole, NodeRoles, RolesNeedPostgres
from fairwarning.engine.protocols import Clock, Ids, Store, StoreDown
from fairwarning.engine.request_log import Requests
from fairwarning.engine.service import Engine, Rules
from fairwarning.fleet_file.apply import apply, current_scopes
from fairwarning.fleet_file.model import Fleet
from fairwarning.fleet_file.plan import plan
from fairwarning.logs import log_commit
from fairwarning.metadata.identity import is_loopback
from fairwarning.metadata.request_watchers import RefusalWatcher, Watcher, record_requests
from fairwarning.metadata.server import MetadataServer
from fairwarning.metadata.settings import EndpointRules
from fairwarning.operator_api.context import AzureListener, Control
from fairwarning.operator_api.expired_records import RecordCleanup
from fairwarning.operator_api.own_certificate import CannotCertify, OwnCertificate, own_certificate
from fairwarning.operator_api.routes.clock import resume_clock, save_position
from fairwarning.operator_api.server import ControlServer, Tls, bound, url_of
from fairwarning.operator_api.store_wait import open_store
from fairwarning.starter_fleet import STARTER_FLEET
from fairwarning.workers.engine_server import EngineServer, WorkerMetrics

Address = tuple[str, int]
_log = logging.getLogger(__name__)


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


class NotOnThisMachine(Exception):
    def __init__(self, host: str) -> None:
        super().__init__(
            f"--azure is for programs on this machine, and {host} can be reached from elsewhere; "
            "Azure's clients elsewhere use the control plane itself: give --control, "
            "--tls-certificate and --tls-key"
        )


class WorkerSockets(NamedTuple):
    """The sockets that the supervisor has opened for the engine's process."""

    workers: socket.socket
    """The Unix socket on which workers call."""
    urls: list[str]
    """The URLs of the metadata endpoint, which the workers serve."""
    control: socket.socket
    azure: socket.socket | None
    azure_trouble: str = ""
    """Why the optional socket for Azure's clients could not be opened."""


class _Extra(NamedTuple):
    """The TLS listener for Azure's clients, for a control plane that does not use TLS itself."""

    listener: socket.socket
    own: OwnCertificate


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    store_url: str
    store_direct_url: str = ""
    """The URL of the store's PostgreSQL without a pooler. It is empty if there is no pooler."""
    metadata: Sequence[Address] = (("127.0.0.1", 0),)
    control: Address = ("127.0.0.1", 0)
    rules: EndpointRules = field(default_factory=EndpointRules)
    engine_rules: Rules = field(default_factory=Rules)
    """The rules of the engine. All nodes that share a store should have the same rules."""
    is_clock_virtual: bool = False
    clock_start: Instant | None = None
    """The time at which a virtual clock begins. None means now."""
    clock_speed: float = 0
    """How much faster than real time the virtual clock runs. At 0 it moves only when asked to."""
    seed: int | None = None
    """The seed of the random numbers for faults. None means a different seed each time."""
    tls: Tls | None = None
    public_url: str = ""
    """The address of the control plane behind a reverse proxy, such as `https://fw.example`."""
    azure: Address | None = None
    """The address of a TLS listener for Azure's clients, which uses a certificate of our own."""
    is_azure_optional: bool = False
    """Whether the node starts without the `azure` listener if that listener cannot be opened."""
    azure_folder: Path | None = None
    """The folder of our own certificate authority. None means a folder in the user's data."""
    fleet: Fleet | None = None
    """The fleet that is applied at the start. None leaves the fleet as it is in the store."""
    makes_starter_fleet: bool = True
    """Whether an empty store gets the starter fleet if `fleet` is None."""
    roles: NodeRoles = ALL_ROLES
    """What this node does. Only nodes that share a PostgreSQL can divide the roles."""
    sockets: WorkerSockets | None = None
    """The sockets of a node with workers. None means that this process does everything."""


class Node:
    def __init__(self, settings: NodeSettings, *, ids: Ids | None = None) -> None:
        host = settings.control[0]
        if not is_loopback(host) and settings.tls is None:
            raise TlsNeeded(host)
        if settings.azure is not None and not is_loopback(settings.azure[0]):
            raise NotOnThisMachine(settings.azure[0])
        self._settings = settings
        self._exits = contextlib.AsyncExitStack()
        has_own_time = settings.is_clock_virtual or settings.clock_speed > 0
        self.clock: Clock = (
            VirtualClock(settings.clock_start or _this_second()) if has_own_time else SystemClock()
        )
        name = boot.new_node_id()
        self.store: Store = boot.make_store(
            settings.store_url,
            self.clock,
            has_own_time=has_own_time,
            direct_url=settings.store_direct_url,
            node=name,
            silent_s=settings.rules.store_s_max,
        )
        if settings.roles != ALL_ROLES and not self.store.is_shared:
            raise RolesNeedPostgres
        self.engine: Engine = boot.make_engine(
            self.store,
            self.clock,
            rules=settings.engine_rules,
            ids=ids,
            node=name,
            takes_work=NodeRole.ENGINE in settings.roles,
        )
        self.faults = Faults(self.clock, settings.seed)
        self.requests = Requests()
        self._metadata: MetadataServer | None = None
        """The endpoint of this process. It is None if workers are the endpoint."""
        self.has_starter_fleet = False
        self.metadata_urls: list[str] = []
        self.control_url = ""
        self.azure_url = ""
        """The URL for Azure's clients. It is empty if they cannot reach this node."""
        self.azure_trouble = ""
        """Why the optional `azure` listener could not be opened. It is empty if all went well."""

    async def start(self) -> Self:
        """Start all parts. If a part fails, stop the others and raise its exception. The exceptions
        are CannotListen, CannotCertify, StoreDown and Refused, among others.
        """
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        await self._exits.aclose()

    def watch(self, watcher: Watcher) -> None:
        """Call the watcher for each request of an instance. The node must have been started."""
        assert self._metadata is not None, "the node has not started"
        self._metadata.watch(watcher)

    def watch_refusals(self, watcher: RefusalWatcher) -> None:
        """Call the watcher for each malformed request. The node must have been started."""
        assert self._metadata is not None, "the node has not started"
        self._metadata.watch_refusals(watcher)

    def set_reachable(self, is_reachable: bool) -> None:
        """Close the ports of the metadata endpoint, or open them again. Tests use this."""
        assert self._metadata is not None, "the node has not started"
        self._metadata.set_reachable(is_reachable)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _start(self) -> None:
        settings, exits = self._settings, self._exits
        listener = self._bind(settings.control, "--control")
        self.control_url = url_of(listener, is_tls=settings.tls is not None)
        await open_store(self.store, listener, settings.tls)
        exits.push_async_callback(self.store.close)
        exits.push_async_callback(self.engine.stop)
        if isinstance(self.clock, VirtualClock):
            await resume_clock(self.clock, self.store)
        server = await self._make_endpoint()
        if server is not None:
            exits.push_async_callback(server.stop)
            self.metadata_urls = server.urls
            self._note_requests(server)
        extra = self._bind_azure()
        azure = self._azure_listener(extra)
        control = boot.make_control(
            self.engine,
            self.store,
            self.engine.views,
            self.clock,
            azure,
            self.faults,
            self.metadata_urls,
            self.requests,
            settings.public_url,
            settings.roles,
        )
        # A proxy on this machine forwards requests from other machines.
        needs_token = not is_loopback(settings.control[0]) or bool(settings.public_url)
        count_polls = _no_answers if server is None else server.count_answers
        app = boot.make_control_app(
            control,
            needs_token=needs_token,
            count_polls=count_polls,
            store_s_max=settings.rules.store_s_max if self.store.is_shared else None,
        )
        if isinstance(server, EngineServer):
            app.metrics.registry.register(WorkerMetrics(server))
        control_servers = [ControlServer(app, listener, settings.tls)]
        if extra is not None:
            control_servers.append(ControlServer(app, extra.listener, extra.own.tls))
        for each in control_servers:
            exits.push_async_callback(each.stop)
        self.engine.observe(log_commit)
        if control.engine_watch is None:
            await self._start_engine(control)
        else:
            self._keep(control.engine_watch.start())
        if server is not None:
            server.start()
        for each in control_servers:
            await each.start()
        if isinstance(self.clock, VirtualClock) and settings.clock_speed:
            self._set_going(self.clock, settings.clock_speed)

    async def _start_engine(self, control: Control) -> None:
        """Start what only nodes with the role engine do."""
        exits = self._exits
        exits.push_async_callback(control.notifications.stop)
        await control.notifications.start()
        exits.push_async_callback(control.rollouts.stop)
        await control.rollouts.start()
        # After the rollouts: a declaration could start an event that a closed window holds back.
        await self._set_fleet()
        await self.engine.start()
        cleanup = RecordCleanup(self.store, SystemClock())
        exits.push_async_callback(cleanup.stop)
        cleanup.start()
        if self.store.is_shared:
            self._keep(EngineBeats(self.store).start())

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Cancel the task when the node stops."""

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._exits.push_async_callback(end)

    def _note_requests(self, server: MetadataServer | EngineServer) -> None:
        hear = record_requests(self.requests)

        def switch(is_on: bool) -> None:
            if is_on:
                server.watch(hear, hears_refused=True)
            else:
                server.unwatch(hear)

        self.requests.switch = switch
        self._exits.callback(self.requests.stop)

    def _set_going(self, clock: VirtualClock, speed: float) -> None:
        pacer = Pacer(clock, speed)
        self._exits.push_async_callback(self._save_clock_position, clock)
        self._exits.push_async_callback(pacer.stop)
        pacer.start()

    async def _save_clock_position(self, clock: VirtualClock) -> None:
        with contextlib.suppress(StoreDown):
            await save_position(clock.now(), self.store, by=ENGINE)

    def _bind(self, address: Address, option: str) -> socket.socket:
        opened = self._settings.sockets
        if opened is not None:
            found = opened.control if option == "--control" else opened.azure
            if found is None:
                raise CannotListen(OSError(0, opened.azure_trouble), option)
            return found
        try:
            listener = bound(*address)
        except OSError as problem:
            raise CannotListen(problem, option) from problem
        self._exits.callback(listener.close)
        return listener

    def _bind_azure(self) -> _Extra | None:
        settings = self._settings
        if settings.azure is None or NodeRole.CONTROL not in settings.roles:
            return None
        folder = settings.azure_folder or boot.default_tls_folder()
        try:
            own = own_certificate(folder, settings.azure[0], datetime.now(UTC))
            return _Extra(self._bind(settings.azure, "--azure"), own)
        except (CannotListen, CannotCertify) as problem:
            if not settings.is_azure_optional:
                raise
            self.azure_trouble = str(problem)
            return None

    def _azure_listener(self, extra: _Extra | None) -> AzureListener:
        if extra is not None:
            self.azure_url = url_of(extra.listener, is_tls=True)
            return AzureListener(self.azure_url, extra.own.authority)
        self.azure_url = self.control_url if self._settings.tls is not None else ""
        return AzureListener(self.azure_url)

    async def _make_endpoint(self) -> MetadataServer | EngineServer | None:
        """Return the endpoint of this node, or None if the node does not have the role metadata."""
        if NodeRole.METADATA not in self._settings.roles:
            self.faults.are_elsewhere = True
            await self.engine.show()
            return None
        opened = self._settings.sockets
        if opened is not None:
            self.faults.are_elsewhere = True
            views = await self.engine.show()
            return EngineServer(
                opened.workers,
                opened.urls,
                self.engine,
                views,
                self.store,
                self.clock,
                store_s_max=self._settings.rules.store_s_max,
            )
        try:
            self._metadata = await boot.make_metadata_server(
                self.engine,
                self.store,
                self.clock,
                self._settings.metadata,
                self._settings.rules,
                self.faults,
            )
        except OSError as problem:
            raise CannotListen(problem, "--metadata") from problem
        return self._metadata

    async def _set_fleet(self) -> None:
        fleet = self._settings.fleet
        if fleet is not None:
            planned = plan(await current_scopes(self.store), fleet, prune=True)
            await apply(self.engine, planned, force=False, by=operator_actor("fleet-file"))
            for change in planned.changes:
                if change.terminate_notice_ms is not None:
                    _log.warning("the fleet file leaves out %s: it %s", change.what, change.detail)
        elif self._settings.makes_starter_fleet and not await self.store.scope_ids(limit=1):
            by = operator_actor("starter")
            await self.engine.declare(STARTER_FLEET, by=by, why="the store was empty")
            self.has_starter_fleet = True


def _no_answers() -> dict[str, int]:
    return {"": 0}


def _this_second() -> Instant:
    return Instant(int(time.time()) * 1000)
