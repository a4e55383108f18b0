"""What the operations work with."""

from dataclasses import dataclass

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
