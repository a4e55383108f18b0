"""This module says what a step back of the store means for a document that this node has served.
Pure.
"""

from dataclasses import dataclass

from fairwarning.core.document import document_tag, visible_events
from fairwarning.core.instants import Instant
from fairwarning.core.model import Scope, ScopeId
from fairwarning.engine.scope_view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBack:
    """The store has lost entries of its journal: a fail-over, or a backup that was restored."""

    common_ms: Instant | None
    """When the newest entry was written that both pasts share; None if that is not known."""
    lost: frozenset[ScopeId]
    """Scopes that are known to have lost something."""

    def joined(self, earlier: "StepBack | None") -> "StepBack":
        """Both step backs at once, for views that have followed neither."""
        if earlier is None:
            return self
        known = self.common_ms is not None and earlier.common_ms is not None
        common_ms = min(self.common_ms or 0, earlier.common_ms or 0) if known else None
        return StepBack(
            common_ms=None if common_ms is None else Instant(common_ms),
            lost=self.lost | earlier.lost,
        )


def must_begin_anew(served: View, stored: Scope, step_back: StepBack) -> bool:
    """Whether a number of the stored activation may have been served with another document.

    Better once too often than once too seldom: to begin anew only shows a document again.
    """
    if stored.activated_ms is None:
        return False
    is_new = step_back.common_ms is not None and stored.activated_ms > step_back.common_ms
    if served.activated_ms != stored.activated_ms:
        # An activation that began behind the shared past is known to nobody from before. But
        # an activation can be named after a later instant than the one when it began.
        return not is_new or stored.activated_ms in served.earlier
    if stored.id in step_back.lost or served.revision > stored.revision:
        return True
    if served.revision < stored.revision:
        # Only news that is still on its way, unless nobody knows how much is lost.
        return step_back.common_ms is None
    tag = document_tag(stored.activated_ms, stored.incarnation, visible_events(stored))
    return tag != served.tag
