"""What the operations work with."""

import asyncio
from dataclasses import dataclass, field

from fairwarning.control.tokens import Tokens
from fairwarning.engine.ports import Clock, Store
from fairwarning.engine.rollouts import Rollouts
from fairwarning.engine.service import Engine
from fairwarning.engine.views import Views
from fairwarning.notices.dispatcher import Notices


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    engine: Engine
    store: Store
    views: Views
    clock: Clock
    tokens: Tokens
    rollouts: Rollouts
    notices: Notices
    advancing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Two who move a virtual clock at once would both count from the same instant."""
