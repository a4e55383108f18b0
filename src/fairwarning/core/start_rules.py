"""This module decides whether a scheduled event may start now, and if not, what it waits for.

Theory of operation. An event is *ready* when it is approved or its time has come (promise 1). A
ready event is *blocked* while a started event affects one of its instances, or, if both are
platform events, another update domain of the scope (promise 3). An approved Terminate is *held*
while another Terminate of the scope is pending, not approved and not yet due (promise 8). A blocked
event needs no timer, because only a transition can unblock it. A held event has a deadline, which
depends on NotBefore.
"""

from collections.abc import Iterator

from fairwarning.core.instants import Instant, later
from fairwarning.core.journal_text import in_words, listed
from fairwarning.core.limits import Timing
from fairwarning.core.model import Event, EventType, Phase, Power, Scope, Source, StartCause

LATE_MS = 1_000
"""An event that could have started longer ago than this was started late."""


def start_cause(event: Event, now: Instant) -> StartCause | None:
    """Return why the event may start, or None if it must wait for an approval or its time."""
    if not event.announced:
        return StartCause.AUTOMATIC
    if event.is_approved:
        asked = any(each.by.kind != "policy" for each in event.approvals)
        return StartCause.APPROVED if asked else StartCause.AUTOMATIC
    return StartCause.DUE if now >= event.not_before_ms else None


def is_blocked(scope: Scope, event: Event) -> bool:
    return any(_in_the_way(event, other) for other in scope.in_phase(Phase.STARTED))


def _in_the_way(event: Event, started: Event) -> bool:
    if not set(event.resources).isdisjoint(started.resources):
        return True
    both_platform = event.source is started.source is Source.PLATFORM
    return both_platform and event.update_domain != started.update_domain


def in_the_way(scope: Scope, event: Event) -> tuple[Event, ...]:
    """Return the events that keep this event waiting, or would do so if it were approved now."""
    started = (each for each in scope.in_phase(Phase.STARTED) if _in_the_way(event, each))
    deletes = (
        each
        for each in scope.in_phase(Phase.SCHEDULED)
        if event.type is each.type is EventType.TERMINATE
        and each.id != event.id
        and each.announced
        and not each.is_approved
    )
    return (*started, *deletes)


def is_held(scope: Scope, event: Event, now: Instant) -> bool:
    falls_ms = barrier_falls_ms(scope, event)
    return falls_ms is not None and now < falls_ms


def barrier_falls_ms(scope: Scope, event: Event) -> Instant | None:
    """Return when an approved Terminate event starts although others are not approved, or None.

    These are the rules of Azure: it waits for all pending deletes of the scope that are not
    approved, but never beyond its own NotBefore.
    """
    if event.type is not EventType.TERMINATE or not event.is_approved:
        return None
    unapproved = [
        other.not_before_ms
        for other in scope.in_phase(Phase.SCHEDULED)
        if other.type is EventType.TERMINATE and other.announced and not other.is_approved
    ]
    return min(event.not_before_ms, max(unapproved)) if unapproved else None


def is_all_down(scope: Scope) -> bool:
    """Return whether no live instance of the scope is running, so that none could approve."""
    live = scope.roster.live
    return bool(live) and all(each.power is not Power.RUNNING for each in live)


def startable(scope: Scope, now: Instant) -> tuple[Event, StartCause] | None:
    """Return the next event that may start now and why, or None. The earliest NotBefore comes
    first, then the oldest event, then the smallest id.
    """
    waiting = sorted(
        scope.in_phase(Phase.SCHEDULED),
        key=lambda each: (each.not_before_ms, each.created_ms, each.id),
    )
    for event in waiting:
        cause = start_cause(event, now)
        if cause and not is_blocked(scope, event) and not is_held(scope, event, now):
            return event, cause
    return None


def late_ms(before: Scope, event: Event, cause: StartCause, now: Instant) -> int:
    """Return how late an event is started, or 0 if it is on time. `before` is the scope before the
    command. If the event was blocked there, it could not start earlier, and so it is not late.
    """
    if cause is not StartCause.DUE or event.id not in before.events or is_blocked(before, event):
        return 0
    late = now - event.not_before_ms
    return late if late > LATE_MS else 0


def next_deadline(scope: Scope, timing: Timing) -> Instant | None:
    """Return the next instant at which something is due, or None."""
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
    """Return when the scope is deactivated if no instance asks for its document."""
    assert scope.last_seen_ms is not None
    return later(scope.last_seen_ms, timing.idle_ms + timing.idle_grace_ms)


def why_waiting(scope: Scope, event: Event, now: Instant) -> str | None:
    """Return what a scheduled event waits for, as a part of a sentence. None if it starts now."""
    if event.phase is not Phase.SCHEDULED:
        return None
    if start_cause(event, now) is None:
        return f"for an approval; without one it starts at {in_words(event.not_before_ms)}"
    others = in_the_way(scope, event)
    started = [each for each in others if each.phase is Phase.STARTED]
    if started:
        return f"until {_named(started)} is over, which has started and is in its way"
    if not is_held(scope, event, now):
        return None
    falls_ms = barrier_falls_ms(scope, event)
    assert falls_ms is not None
    # Events that are due no longer hold others.
    pending = [each for each in others if each.not_before_ms > now]
    return (
        f"until {_named(pending)} is approved too, as deletes of a scope go together; at "
        f"{in_words(falls_ms)} it starts anyway"
    )


def _named(events: list[Event]) -> str:
    first, *others = events
    more = f" and {len(others)} more" if others else ""
    return f"{first.type} {first.id} of {listed(first.resources)}{more}"
