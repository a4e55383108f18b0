"""The listeners that a store tells of its commits, and the values all stores share for history
outside all scopes."""

import logging

from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import Listener, RecordChanged, Signal

_log = logging.getLogger(__name__)


class Listeners:
    """A listener that raises is logged, and the others are still told."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, signal: Signal) -> None:
        for listener in self._listeners:
            try:
                listener(signal)
            except Exception:
                _log.exception("a listener broke on the signal of %s", signal.scope_id)


GLOBAL_SCOPE = ScopeId("")
"""The scope id of lines of history that belong to no scope."""
GLOBAL_REVISION = 0
GLOBAL_SIGNAL = Signal(scope_id=GLOBAL_SCOPE, next_deadline_ms=None)


def record_changed(kind: str, key: str) -> RecordChanged:
    return RecordChanged(f"{kind} {key!r} was changed meanwhile; read it again")
