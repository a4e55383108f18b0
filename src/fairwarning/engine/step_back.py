"""This module decides whether a scope needs a new activation after a step back of the store."""

from dataclasses import dataclass

from fairwarning.core.document import document_tag, visible_events
from fairwarning.core.instants import Instant
from fairwarning.core.model import Scope, ScopeId
from fairwarning.engine.scope_view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBack:
    """The store has lost entries of its journal, by a fail-over or a restored backup."""

    common_ms: Instant | None
    """The time of the newest entry that is not lost. None if it is not known."""
    lost: frozenset[ScopeId]
    """The scopes that are known to have lost something."""

    def joined(self, earlier: "StepBack | None") -> "StepBack":
        """Return one step back that stands for this one and an earlier one."""
        if earlier is None:
            return self
        known = self.common_ms is not None and earlier.common_ms is not None
        common_ms = min(self.common_ms or 0, earlier.common_ms or 0) if known else None
        return StepBack(
            common_ms=None if common_ms is None else Instant(common_ms),
            lost=self.lost | earlier.lost,
        )


def must_begin_anew(served: View, stored: Scope, step_back: StepBack) -> bool:
    """Return whether a document number of this activation may have been served twice. In doubt it
    is True, because a new activation only shows instances their document again.
    """
    if stored.activated_ms is None:
        return False
    is_new = step_back.common_ms is not None and stored.activated_ms > step_back.common_ms
    if served.activated_ms != stored.activated_ms:
        # An activation that began after the newest entry that is not lost was never served before.
        # But the instant that names an activation can be later than its real begin.
        return not is_new or stored.activated_ms in served.earlier
    if stored.id in step_back.lost or served.revision > stored.revision:
        return True
    if served.revision < stored.revision:
        # The view is just late, unless it is not known how much is lost.
        return step_back.common_ms is None
    tag = document_tag(stored.activated_ms, stored.incarnation, visible_events(stored))
    return tag != served.tag
