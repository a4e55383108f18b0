"""The history outside all scopes: how its lines look, and the signal that tells of them."""

from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import RecordChanged, Signal

OUTSIDE = ScopeId("")
OUTSIDE_REVISION = 0
OUTSIDE_SIGNAL = Signal(scope_id=OUTSIDE, next_deadline_ms=None)


def record_changed(kind: str, key: str) -> RecordChanged:
    return RecordChanged(f"{kind} {key!r} was changed meanwhile; read it again")
