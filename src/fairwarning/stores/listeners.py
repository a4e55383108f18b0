"""Who wants to know of commits. One that breaks is logged, and the others are still told."""

import logging

from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import Listener, RecordChanged, Signal

_log = logging.getLogger(__name__)


class Listeners:
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


# The history outside all scopes: how its lines look, and the signal that tells of them.
OUTSIDE = ScopeId("")
OUTSIDE_REVISION = 0
OUTSIDE_SIGNAL = Signal(scope_id=OUTSIDE, next_deadline_ms=None)


def record_changed(kind: str, key: str) -> RecordChanged:
    return RecordChanged(f"{kind} {key!r} was changed meanwhile; read it again")
