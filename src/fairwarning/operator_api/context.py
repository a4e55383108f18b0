"""What the operations work with."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Clock, Store
from fairwarning.engine.request_log import Requests
from fairwarning.engine.rollouts import Rollouts
from fairwarning.engine.service import Engine
from fairwarning.notifications.dispatcher import Notices
from fairwarning.operator_api.auth import Tokens
from fairwarning.operator_api.leases import Leases
from fairwarning.operator_api.long_work import LongWork
from fairwarning.operator_api.side_process import SideProcesses


class AzureDoor(NamedTuple):
    """Where Azure's clients, which speak TLS only, reach this server."""

    url: str = ""
    """Empty: nowhere."""
    authority: str | None = None
    """What they must trust, as PEM; None: an authority that is not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    engine: Engine
    store: Store
    views: Views
    clock: Clock
    tokens: Tokens
    rollouts: Rollouts
    notices: Notices
    faults: Faults
    requests: Requests
    azure: AzureDoor
    drivers: DriverCatalogue
    """Which drivers a fleet may name, and their settings."""
    leases: Leases
    apart: LongWork
    """For what may take a second of our own time."""
    aside: SideProcesses
    """For what may take longer, or much memory."""
    metadata_urls: Sequence[str] = ()
    """Where instances ask this node."""
    public_url: str = ""
    """Where people and programs reach the control plane through a proxy; empty: there is none."""
    advancing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Two who move a virtual clock at once would both count from the same instant."""
