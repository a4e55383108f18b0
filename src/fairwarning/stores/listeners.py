"""The listeners of a store's commits, and the ids of history lines that belong to no scope."""

import logging

from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import Listener, RecordChanged, Signal

_log = logging.getLogger(__name__)


class Listeners:
    """Tells all listeners about each commit, and logs the error of a listener that raises."""

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
"""The scope id of history lines that belong to no scope."""
GLOBAL_REVISION = 0
GLOBAL_SIGNAL = Signal(scope_id=GLOBAL_SCOPE, next_deadline_ms=None)


def record_changed(kind: str, key: str) -> RecordChanged:
    return RecordChanged(f"{kind} {key!r} was changed meanwhile; read it again")
