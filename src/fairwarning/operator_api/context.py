"""`Control` holds all objects that the handlers of routes use."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.document_views import Views
from fairwarning.engine.engine_presence import EngineWatch
from fairwarning.engine.node_roles import ALL_ROLES, NodeRoles
from fairwarning.engine.protocols import Clock, Store
from fairwarning.engine.request_log import Requests
from fairwarning.engine.rollouts import Rollouts
from fairwarning.engine.service import Engine
from fairwarning.notifications.dispatcher import Notifications
from fairwarning.operator_api.auth import Tokens
from fairwarning.operator_api.offload import Offload
from fairwarning.operator_api.record_leases import Leases
from fairwarning.operator_api.subprocess_pool import SubprocessPool


class AzureListener(NamedTuple):
    """The TLS listener for Azure's clients, which use only TLS."""

    url: str = ""
    """The listener's URL; empty if there is no such listener."""
    authority: str | None = None
    """Our certificate authority as PEM; None if another authority signed the certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    engine: Engine
    store: Store
    views: Views
    clock: Clock
    tokens: Tokens
    rollouts: Rollouts
    notifications: Notifications
    faults: Faults
    requests: Requests
    azure: AzureListener
    drivers: DriverCatalogue
    """The drivers that a fleet may name, with their settings."""
    leases: Leases
    offload: Offload
    """Runs computations that may take a second."""
    subprocesses: SubprocessPool
    """Runs computations that may take longer than a second, or much memory."""
    metadata_urls: Sequence[str] = ()
    """The URLs at which instances reach this node."""
    roles: NodeRoles = ALL_ROLES
    engine_watch: EngineWatch | None = None
    """Notices whether an engine is running. It is None if this node has the role engine."""
    public_url: str = ""
    """The URL of the proxy in front of the control plane; empty if there is none."""
    advancing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a virtual clock is moved, so that two moves do not begin at the same time."""
