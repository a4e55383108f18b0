"""`decide` is the only way to change a scope.

For a command it returns the transitions that follow from it at `now`, or it raises Refused and
nothing changes. After every command it also does everything that is due: it starts events, ends
overdue attempts and forgets what is old. So a caller cannot leave due work undone.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from fairwarning.core import commands, new_events, transitions
from fairwarning.core import roster as rosters
from fairwarning.core.approval import approve, approve_by_policy, note_drained, note_seen
from fairwarning.core.commands import Command, RosterCommand
from fairwarning.core.completion import drop_events_of_deleted, forget_old
from fairwarning.core.declare import declare, refuse_overtaken
from fairwarning.core.document import visible_content
from fairwarning.core.driver_leases import expire, fail_attempt, hand_over, release, renew
from fairwarning.core.hook_results import conclude, end_impact, note_hook
from fairwarning.core.instants import Instant, later
from fairwarning.core.lifecycle import Draft
from fairwarning.core.limits import DEFAULT_TIMING, Timing
from fairwarning.core.model import (
    Event,
    EventId,
    InstanceName,
    NodeId,
    OperationKind,
    Phase,
    Scope,
    StartCause,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.start_rules import idle_deadline, late_ms, next_deadline, startable
from fairwarning.core.transitions import ScopeTransition


class Change(Struct, frozen=True, kw_only=True):
    """The scope after a decision, and the transitions that lead to it."""

    scope: Scope
    transitions: tuple[ScopeTransition, ...]
    next_deadline_ms: Instant | None


def decide(
    scope: Scope,
    command: Command,
    now: Instant,
    *,
    timing: Timing = DEFAULT_TIMING,
    node: NodeId | None = None,
) -> Change:
    """Return the change that the command makes. Raises Refused, and no other exception. If `node`
    is given, that node takes the driver work that is ready.
    """
    draft = Draft(scope)
    _answer(draft, command, now, timing)
    _advance(draft, scope, now, timing)
    if node is not None:
        hand_over(draft, node, now, timing)
    _publish(draft, scope)
    return Change(
        scope=draft.scope,
        transitions=tuple(draft.transitions),
        next_deadline_ms=next_deadline(draft.scope, timing),
    )


def _answer(draft: Draft, command: Command, now: Instant, timing: Timing) -> None:
    scope = draft.scope
    match command:
        case commands.Schedule():
            draft.add(transitions.Scheduled(event=new_events.scheduled_event(scope, command, now)))
            if command.already_happened:
                cause = StartCause.ALREADY_HAPPENED
                draft.add(transitions.Started(event_id=command.event_id, cause=cause, at_ms=now))
        case commands.Operate(event_id=event_id, kind=kind, instance=name):
            _operate(draft, kind, ((event_id, name),), now, timing)
        case commands.OperateAll(kind=kind, targets=targets):
            _operate(draft, kind, targets, now, timing)
        case commands.Approve():
            approve(draft, find_event(scope, command.event_id), command.by, now)
        case commands.ApproveAll(event_ids=ids, by=by):
            for event in [scope.events[id] for id in ids if id in scope.events]:
                if not event.is_finished:
                    approve(draft, event, by, now)
        case commands.ReportDrained(event_id=event_id, instance=name):
            note_drained(draft, find_event(scope, event_id), name, now)
        case commands.ReportSeen(event_ids=ids, instance=name):
            note_seen(draft, ids, name, now)
        case commands.Cancel():
            event = _cancellable(scope, command.event_id)
            reason = command.reason or "cancelled by the operator"
            draft.add(transitions.Cancelled(event_id=event.id, reason=reason, at_ms=now))
        case commands.Postpone():
            _postpone(draft, command, now)
        case commands.Activate():
            _activate(draft, now, timing)
        case commands.BeginAnew():
            _begin_anew(draft, command, now)
        case commands.Tick():
            pass
        case commands.ReportDone(event_id=event_id):
            event = find_event(scope, event_id)
            if event.phase is Phase.STARTED:
                end_impact(draft, event, Phase.COMPLETED, "", now)
        case commands.ReportFailure(event_id=event_id, attempt=attempt, reason=reason):
            event = find_event(scope, event_id)
            # A late report about an earlier attempt says nothing about this one.
            if event.work and event.work.node and event.work.attempt == attempt:
                fail_attempt(draft, event, reason, now, timing)
        case commands.ReportHook(event_id=event_id):
            note_hook(draft, find_event(scope, event_id), command, now)
        case commands.RenewLease(event_id=event_id, attempt=attempt, node=node):
            renew(draft, find_event(scope, event_id), attempt, node, now, timing)
        case commands.Release(event_id=event_id, attempt=attempt, node=node):
            release(draft, find_event(scope, event_id), attempt, node, now)
        case _:
            _change_roster(draft, command, now, timing)


def _change_roster(draft: Draft, command: RosterCommand, now: Instant, timing: Timing) -> None:
    match command:
        case commands.AddInstances(instances=instances):
            rosters.add(draft, instances)
        case commands.ChangeModel():
            rosters.change_model(draft, command)
        case commands.UpgradeInstances(names=names):
            rosters.upgrade(draft, names)
        case commands.ChangePolicy(policy=policy):
            rosters.change_policy(draft, policy)
        case commands.Declare(before=before):
            refuse_overtaken(draft.scope, before)
            # After a day without requests nobody needs notice, even if there was no tick since.
            _deactivate_if_idle(draft, now, timing)
            declare(draft, command, now)
        case commands.ReportPower(instance=name, power=power):
            if new_events.find_instance(draft.scope, name).power is not power:
                draft.add(transitions.PowerChanged(name=name, power=power))
        case _:
            assert_never(command)


def _operate(
    draft: Draft,
    kind: OperationKind,
    targets: Sequence[tuple[EventId, InstanceName]],
    now: Instant,
    timing: Timing,
) -> None:
    """Schedule an event of the operation for each target. Raises Refused if there is no target."""
    _deactivate_if_idle(draft, now, timing)
    if not targets:
        raise Refused(Code.NO_TARGET, "an operation needs at least one instance; name one")
    for event_id, name in targets:
        one = commands.Operate(event_id=event_id, kind=kind, instance=name)
        draft.add(transitions.Scheduled(event=new_events.operation_event(draft.scope, one, now)))


def find_event(scope: Scope, event_id: EventId) -> Event:
    event = scope.events.get(event_id)
    if event is None:
        raise Refused(
            Code.UNKNOWN_EVENT,
            f"scope {scope.id} has no event {event_id}; `fairwarning events` lists those it has",
        )
    return event


def _cancellable(scope: Scope, event_id: EventId) -> Event:
    event = find_event(scope, event_id)
    if event.is_finished:
        raise Refused(
            Code.EVENT_FINISHED,
            f"event {event.id} is over ({event.phase}); there is nothing left to decide",
        )
    if event.phase is Phase.STARTED:
        raise Refused(
            Code.EVENT_STARTED,
            f"event {event.id} has started and cannot be taken back; wait for it to end",
        )
    return event


def _postpone(draft: Draft, command: commands.Postpone, now: Instant) -> None:
    event = _cancellable(draft.scope, command.event_id)
    replacement = new_events.postponed_event(draft.scope, event, command, now)
    draft.add(
        transitions.Cancelled(
            event_id=event.id, reason="postponed", at_ms=now, replaced_by=replacement.id
        )
    )
    draft.add(transitions.Scheduled(event=replacement))


def _activate(draft: Draft, now: Instant, timing: Timing) -> None:
    """Activate the scope, unless it is activated and has had a request within the last day."""
    _deactivate_if_idle(draft, now, timing)
    if not draft.scope.is_activated:
        draft.add(transitions.Activated(at_ms=_activation_ms(draft.scope, now)))


def _begin_anew(draft: Draft, command: commands.BeginAnew, now: Instant) -> None:
    if draft.scope.activated_ms == command.activated_ms:
        earliest = max(now, later(command.served_ms, 1))
        at = _activation_ms(draft.scope, earliest)
        draft.add(transitions.Activated(at_ms=at, reason=command.reason))


def _activation_ms(scope: Scope, earliest: Instant) -> Instant:
    """Return an instant that no earlier activation of the scope has, even if the clock was set
    back. This works because `last_seen_ms` is never older than the activation, and stays after it.
    """
    seen = scope.last_seen_ms
    return earliest if seen is None else max(earliest, later(seen, 1))


def _deactivate_if_idle(draft: Draft, now: Instant, timing: Timing) -> None:
    if draft.scope.is_activated and now >= idle_deadline(draft.scope, timing):
        draft.add(transitions.Deactivated(at_ms=now))


def _advance(draft: Draft, before: Scope, now: Instant, timing: Timing) -> None:
    conclude(draft, now)
    expire(draft, now, timing)
    drop_events_of_deleted(draft, now)
    approve_by_policy(draft, now)
    while found := startable(draft.scope, now):
        event, cause = found
        late = late_ms(before, event, cause, now)
        draft.add(transitions.Started(event_id=event.id, cause=cause, at_ms=now, late_ms=late))
    _deactivate_if_idle(draft, now, timing)
    forget_old(draft, now, timing)


def _publish(draft: Draft, before: Scope) -> None:
    """Give the document its next number if instances can see a change (promise 6)."""
    same_activation = before.is_activated and before.activated_ms == draft.scope.activated_ms
    if same_activation and visible_content(before) != visible_content(draft.scope):
        draft.add(transitions.DocumentChanged(incarnation=before.incarnation + 1))
