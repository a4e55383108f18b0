"""When time matters next. Between two deadlines the clock cannot change a scope."""

from collections.abc import Iterator

from fairwarning.core.instants import Instant, later
from fairwarning.core.limits import Timing
from fairwarning.core.model import Phase, Scope
from fairwarning.core.starting import barrier_falls_ms, is_blocked


def next_deadline(scope: Scope, timing: Timing) -> Instant | None:
    return min(_deadlines(scope, timing), default=None)


def _deadlines(scope: Scope, timing: Timing) -> Iterator[Instant]:
    for event in scope.events.values():
        if event.phase is Phase.SCHEDULED and not is_blocked(scope, event):
            yield barrier_falls_ms(scope, event) or event.not_before_ms
        if event.work is not None:
            yield event.work.lease_until_ms or event.work.ready_ms
    if scope.is_activated:
        yield idle_deadline(scope, timing)


def idle_deadline(scope: Scope, timing: Timing) -> Instant:
    """From here on a silent scope counts as idle; the grace covers what is noted late."""
    assert scope.last_seen_ms is not None
    return later(scope.last_seen_ms, timing.idle_ms + timing.idle_grace_ms)
