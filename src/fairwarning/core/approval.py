"""This module checks who may approve an event, and approves by policy (promises 7 and 10)."""

from fairwarning.core.instants import Instant
from fairwarning.core.lifecycle import Draft
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    InstanceName,
    OperationKind,
    Phase,
    Policy,
    Scope,
    policy_actor,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.start_rules import is_all_down
from fairwarning.core.transitions import Approved, Drained, Seen


def approve(draft: Draft, event: Event, by: Actor, now: Instant) -> None:
    """Approve the event for all its Resources, unless `by` has done so or it has started. Raises
    Refused if the event is over, or if `by` is an instance of another scope.
    """
    if by.kind == "instance":
        _refuse_stranger(draft.scope, InstanceName(by.name))
    if event.is_finished:
        raise Refused(
            Code.EVENT_FINISHED,
            f"event {event.id} is over ({event.phase}); there is nothing left to approve",
        )
    if event.phase is Phase.SCHEDULED and not any(each.by == by for each in event.approvals):
        draft.add(Approved(event_id=event.id, by=by, at_ms=now))


def note_seen(draft: Draft, ids: tuple[EventId, ...], name: InstanceName, now: Instant) -> None:
    """Note that an instance was shown these events, except those that are over or seen already."""
    for id in ids:
        event = draft.scope.events.get(id)
        if event is not None and not event.is_finished and event.sight is None:
            draft.add(Seen(event_id=id, name=name, at_ms=now))


def note_drained(draft: Draft, event: Event, name: InstanceName, now: Instant) -> None:
    """Note that an instance is ready for an event that has not started. Repeating this does
    nothing. Raises Refused if the event does not affect the instance.
    """
    if name not in event.resources:
        raise Refused(
            Code.NOT_IN_SCOPE,
            f"event {event.id} does not affect instance {name!r}, so nobody waits for it",
        )
    if event.phase is Phase.SCHEDULED and name not in event.drained:
        draft.add(Drained(event_id=event.id, name=name, at_ms=now))


def approve_by_policy(draft: Draft, now: Instant) -> None:
    policy = draft.scope.roster.policy
    for event in draft.scope.in_phase(Phase.SCHEDULED):
        if event.is_approved or not event.announced:
            continue
        name = _policy_for(policy, event)
        if name is None and policy.approve_all_instances_down and is_all_down(draft.scope):
            name = "allInstancesDown"
        if name is not None:
            draft.add(Approved(event_id=event.id, by=policy_actor(name), at_ms=now))


def _policy_for(policy: Policy, event: Event) -> str | None:
    if event.operation is OperationKind.RESTART and policy.approve_user_reboot:
        return "userInitiatedReboot"
    if event.operation is OperationKind.REDEPLOY and policy.approve_user_redeploy:
        return "userInitiatedRedeploy"
    return None


def _refuse_stranger(scope: Scope, name: InstanceName) -> None:
    if not scope.roster.has_live(name):
        raise Refused(
            Code.NOT_IN_SCOPE,
            f"instance {name!r} is not in scope {scope.id} and cannot approve its events; approve "
            "from one of its own instances, or through the control plane",
        )
