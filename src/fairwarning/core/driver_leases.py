"""This module decides about the work of drivers: leases, attempts, back-off and giving up (promises
4 and 9).

Theory of operation. The work of a started event is stored in the scope, so there is no second queue
that could disagree. The node that runs a transaction takes the work that is ready in the same
commit (`HandedOver`), under a lease. If the node stops answering, the lease ends and the next node
tries again under the same key. It first asks the driver what became of the last attempt. After a
failed attempt there is a wait and then another attempt; after the last one the event ends as
failed. An attempt that was only interrupted (a node restarted) does not count as a failure.
"""

from fairwarning.core import transitions
from fairwarning.core.hook_results import end_impact, give_up_hooks
from fairwarning.core.instants import SECOND_MS, Instant, later
from fairwarning.core.lifecycle import Draft
from fairwarning.core.limits import Timing
from fairwarning.core.model import Event, NodeId, Phase, Roster


def hand_over(draft: Draft, node: NodeId, now: Instant, timing: Timing) -> None:
    for event in draft.scope.unfinished:
        work = event.work
        if work is None or work.node is not None or work.ready_ms > now:
            continue
        attempt_until = later(now, _attempt_ms(event, draft.scope.roster, timing))
        draft.add(
            transitions.HandedOver(
                event_id=event.id,
                attempt=work.attempt + 1,
                node=node,
                lease_until_ms=_lease_until(now, attempt_until, timing),
                attempt_until_ms=attempt_until,
            )
        )


def renew(draft: Draft, event: Event, attempt: int, node: NodeId, now: Instant, t: Timing) -> None:
    """Renew the lease if `node` still has the work under this attempt. Else nothing changes."""
    work = event.work
    if work is None or work.node != node or work.attempt != attempt:
        return
    assert work.attempt_until_ms is not None
    until = _lease_until(now, work.attempt_until_ms, t)
    draft.add(transitions.LeaseRenewed(event_id=event.id, lease_until_ms=until))


def release(draft: Draft, event: Event, attempt: int, node: NodeId, now: Instant) -> None:
    work = event.work
    if work is not None and work.node == node and work.attempt == attempt:
        draft.add(transitions.AttemptLost(event_id=event.id, attempt=attempt, at_ms=now))


def expire(draft: Draft, now: Instant, timing: Timing) -> None:
    """Take back the work of nodes that stopped answering, and end attempts that take too long."""
    for event in draft.scope.unfinished:
        work = event.work
        if work is None or work.lease_until_ms is None or work.lease_until_ms > now:
            continue
        assert work.attempt_until_ms is not None
        if work.hooks.outcome is not None and work.attempt > timing.handovers_max:
            give_up_hooks(draft, event, now)
        elif work.hooks.outcome is not None:
            draft.add(transitions.AttemptLost(event_id=event.id, attempt=work.attempt, at_ms=now))
        elif work.attempt_until_ms <= now:
            took_s = _attempt_ms(event, draft.scope.roster, timing) // SECOND_MS
            fail_attempt(draft, event, f"no answer within {took_s} s", now, timing)
            _free_for_hooks(draft, event, now)
        elif work.attempt >= timing.handovers_max:
            _give_up(draft, event, "every node that had it fell silent", now)
            _free_for_hooks(draft, event, now)
        else:
            draft.add(transitions.AttemptLost(event_id=event.id, attempt=work.attempt, at_ms=now))


def fail_attempt(draft: Draft, event: Event, reason: str, now: Instant, timing: Timing) -> None:
    assert event.work is not None
    if event.work.hooks.outcome is not None:
        return  # Another attempt has said how the impact went.
    failures = event.work.failures + 1
    if failures >= timing.attempts_max:
        _give_up(draft, event, reason, now)
        return
    draft.add(
        transitions.AttemptFailed(
            event_id=event.id,
            attempt=event.work.attempt,
            reason=reason,
            retry_ms=later(now, backoff_ms(failures, timing)),
        )
    )


def backoff_ms(failures: int, timing: Timing) -> int:
    """Return how long to wait before the next attempt. It doubles with each failure."""
    return min(timing.backoff_ms << (failures - 1), timing.backoff_ms_max)


def _give_up(draft: Draft, event: Event, reason: str, now: Instant) -> None:
    assert event.work is not None
    why = f"gave up after attempt {event.work.attempt}: {reason}"
    end_impact(draft, event, Phase.FAILED, why, now)


def _free_for_hooks(draft: Draft, event: Event, now: Instant) -> None:
    """Take the work from a node that is silent, so that another one runs the hooks."""
    work = draft.scope.events[event.id].work
    if work is not None and work.hooks.outcome is not None:
        draft.add(transitions.AttemptLost(event_id=event.id, attempt=work.attempt, at_ms=now))


def _attempt_ms(event: Event, roster: Roster, timing: Timing) -> int:
    return timing.attempt_ms + event.takes_s * SECOND_MS + roster.hooks.longest_ms


def _lease_until(now: Instant, attempt_until: Instant, timing: Timing) -> Instant:
    return min(later(now, timing.lease_ms), attempt_until)
