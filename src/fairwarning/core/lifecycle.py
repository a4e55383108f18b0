"""This module has the life of an event as a table, and applies transitions to a scope.

Theory of operation. `LEGAL` is the whole state machine. A transition that is not in the row of a
phase cannot happen; to try it is a bug, not a refusal. The diagram in `docs/lifecycle.md` is drawn
from this table. An event without notice (a failure that already happened, an automatic approval)
also passes through `scheduled`, but in the same transaction, so that no instance sees it there.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec.structs import replace

from fairwarning.core import transitions
from fairwarning.core.hooks import HookStage
from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Approval,
    Event,
    Instance,
    InstanceName,
    Phase,
    Roster,
    Scope,
    Sight,
    Work,
)
from fairwarning.core.pending_deletions import stayers
from fairwarning.core.transitions import EventTransition, RosterTransition, ScopeTransition

LEGAL: Mapping[Phase | None, Mapping[type[EventTransition], Phase]] = {
    None: {transitions.Scheduled: Phase.SCHEDULED},
    Phase.SCHEDULED: {
        transitions.Approved: Phase.SCHEDULED,
        transitions.Seen: Phase.SCHEDULED,
        transitions.Drained: Phase.SCHEDULED,
        transitions.Started: Phase.STARTED,
        transitions.Cancelled: Phase.CANCELLED,
    },
    Phase.STARTED: {
        transitions.Seen: Phase.STARTED,
        transitions.HandedOver: Phase.STARTED,
        transitions.LeaseRenewed: Phase.STARTED,
        transitions.AttemptLost: Phase.STARTED,
        transitions.AttemptFailed: Phase.STARTED,
        transitions.HookFinished: Phase.STARTED,
        transitions.ImpactEnded: Phase.STARTED,
        transitions.Completed: Phase.COMPLETED,
        transitions.Failed: Phase.FAILED,
    },
    Phase.COMPLETED: {},
    Phase.CANCELLED: {},
    Phase.FAILED: {},
}


def fold(scope: Scope, transitions: Iterable[ScopeTransition]) -> Scope:
    for transition in transitions:
        scope = apply(scope, transition)
    return scope


def apply(scope: Scope, transition: ScopeTransition) -> Scope:
    if isinstance(transition, RosterTransition):
        return replace(scope, roster=_on_roster(scope.roster, transition))
    match transition:
        case transitions.Activated(at_ms=at):
            return replace(scope, activated_ms=at, last_seen_ms=at, incarnation=1)
        case transitions.Deactivated():
            return replace(scope, activated_ms=None, incarnation=0)
        case transitions.DocumentChanged(incarnation=incarnation):
            return replace(scope, incarnation=incarnation)
        case transitions.Forgotten():
            return _forget(scope, transition)
        case transitions.Cancelled() | transitions.Failed():
            return _not_taken(_with_event(scope, transition))
        case _:
            return _with_event(scope, transition)


def _with_event(scope: Scope, transition: EventTransition) -> Scope:
    event = _on_event(scope.events.get(transition.event_id), transition)
    return replace(scope, events={**scope.events, event.id: event})


def _not_taken(scope: Scope) -> Scope:
    """Mark the resource as not removed any more if one of its instances stays after all."""
    if not scope.roster.is_removed or not stayers(scope):
        return scope
    return replace(scope, roster=replace(scope.roster, is_removed=False))


def _on_event(event: Event | None, transition: EventTransition) -> Event:
    phase = LEGAL[event.phase if event else None].get(type(transition))
    assert phase is not None, f"{transition} is illegal for {event}"
    if isinstance(transition, transitions.Scheduled):
        return transition.event
    assert event is not None
    return _changed(replace(event, phase=phase), transition)


def _changed(event: Event, transition: EventTransition) -> Event:
    match transition:
        case transitions.Scheduled():
            return transition.event
        case transitions.Approved(by=by, at_ms=at):
            return replace(event, approvals=(*event.approvals, Approval(by=by, at_ms=at)))
        case transitions.Seen(name=name, at_ms=at):
            return replace(event, sight=Sight(by=name, at_ms=at))
        case transitions.Drained(name=name):
            return replace(event, drained=(*event.drained, name))
        case transitions.Started(cause=cause, at_ms=at):
            return replace(event, start_cause=cause, started_ms=at, work=Work(ready_ms=at))
        case transitions.Cancelled(reason=reason, at_ms=at, replaced_by=replacement):
            return replace(event, outcome=reason, ended_ms=at, replaced_by=replacement)
        case transitions.HandedOver():
            return replace(event, work=_handed(event, transition))
        case transitions.LeaseRenewed(lease_until_ms=until):
            return replace(event, work=replace(_work(event), lease_until_ms=until))
        case transitions.AttemptLost(at_ms=at):
            return replace(event, work=_freed(_work(event), at))
        case transitions.AttemptFailed(retry_ms=at):
            failed = replace(_work(event), failures=_work(event).failures + 1)
            return replace(event, work=_freed(failed, at))
        case transitions.HookFinished():
            return replace(event, work=_counted(_work(event), transition))
        case transitions.ImpactEnded(outcome=outcome, reason=reason):
            hooks = replace(_work(event).hooks, outcome=outcome, reason=reason)
            return replace(event, work=replace(_work(event), hooks=hooks))
        case transitions.Completed(at_ms=at):
            return replace(event, ended_ms=at, work=None)
        case transitions.Failed(reason=reason, at_ms=at):
            return replace(event, outcome=reason, ended_ms=at, work=None)
        case _:
            assert_never(transition)


def _work(event: Event) -> Work:
    assert event.work is not None, f"{event.id} has no work"
    return event.work


def _handed(event: Event, transition: transitions.HandedOver) -> Work:
    return replace(
        _work(event),
        attempt=transition.attempt,
        node=transition.node,
        lease_until_ms=transition.lease_until_ms,
        attempt_until_ms=transition.attempt_until_ms,
    )


def _freed(work: Work, ready_ms: Instant) -> Work:
    return Work(attempt=work.attempt, failures=work.failures, ready_ms=ready_ms, hooks=work.hooks)


def _counted(work: Work, transition: transitions.HookFinished) -> Work:
    number, hooks = transition.number, work.hooks
    if transition.stage is HookStage.BEFORE:
        counted = replace(hooks, before=number, ready_ms=transition.at_ms)
    else:
        counted = replace(hooks, after=number)
    return replace(work, hooks=counted)


def _forget(scope: Scope, transition: transitions.Forgotten) -> Scope:
    gone = frozenset(transition.event_ids)
    names = frozenset(transition.names)
    roster = scope.roster
    if names:
        kept = {name: each for name, each in roster.instances.items() if name not in names}
        roster = replace(roster, instances=kept)
    events = {id: event for id, event in scope.events.items() if id not in gone}
    return replace(scope, roster=roster, events=events)


def _on_roster(roster: Roster, transition: RosterTransition) -> Roster:
    match transition:
        case transitions.InstancesAdded(instances=instances):
            added = {each.name: each for each in instances}
            numbers = (number_of(roster, name) for name in added)
            used = (number + 1 for number in numbers if number is not None)
            return replace(
                roster,
                instances={**roster.instances, **added},
                next_number=max(used, default=roster.next_number),
                is_removed=False,
            )
        case transitions.InstanceDeleted(name=name, at_ms=at):
            return _with(roster, replace(roster.instances[name], deleted_ms=at, addresses=()))
        case transitions.PowerChanged(name=name, power=power):
            return _with(roster, replace(roster.instances[name], power=power))
        case transitions.ModelChanged(model=model):
            return replace(roster, model=model)
        case transitions.InstancesUpgraded(names=names):
            upgraded = (replace(roster.instances[name], model=roster.model) for name in names)
            return _with(roster, *upgraded)
        case transitions.PolicyChanged(policy=policy):
            return replace(roster, policy=policy)
        case transitions.RosterDeclared(roster=declared):
            return declared
        case _:
            assert_never(transition)


def _with(roster: Roster, *instances: Instance) -> Roster:
    changed = {each.name: each for each in instances}
    return replace(roster, instances={**roster.instances, **changed})


def number_of(roster: Roster, name: InstanceName) -> int | None:
    """Return the number of an instance of a uniform scale set: 7 for `workers_7`. Else None."""
    _, _, digits = name.rpartition("_")
    is_number = roster.is_numbered and digits.isascii() and digits.isdigit()
    return int(digits) if is_number else None


class Draft:
    """A scope and the transitions that one decision has made on it so far."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.transitions: list[ScopeTransition] = []

    def add(self, transition: ScopeTransition) -> None:
        self.scope = apply(self.scope, transition)
        self.transitions.append(transition)
