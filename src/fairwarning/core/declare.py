"""This module applies a declaration of the operator: who is in a scope, and under which rules.

Theory of operation. A declaration is the whole roster, but it does not set everything. Existing
instances keep their power and their model. Of the model of the scope, only the terminate notice is
set.

An instance that the declaration leaves out is deleted and kept as deleted for a while; its name may
be declared again. But an instance that is due a Terminate event (its own model has a notice, and
the scope is activated) is not deleted at once. The declaration announces the event, and the
instance stays until the event is over. It is deleted at once only if the command names it in
`without_notice`.

A declaration does not change what an unfinished event depends on. If it would remove or move an
instance of a scheduled event, or declare the name of a deleted one again, it is refused unless it
is forced, and then cancels the event. If the event has started, the operator must wait for its end
(promises 2, 3 and 4).
"""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from fairwarning.common.durations import human_ms
from fairwarning.core.commands import Declare, Operate
from fairwarning.core.instants import Instant
from fairwarning.core.lifecycle import Draft, number_of
from fairwarning.core.model import (
    Event,
    EventId,
    Instance,
    InstanceName,
    Model,
    OperationKind,
    Phase,
    Power,
    Priority,
    Roster,
    Scope,
)
from fairwarning.core.new_events import operation_event
from fairwarning.core.pending_deletions import (
    is_due_terminate,
    pending_terminate,
    stayers,
    takes_away,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.roster import next_model, refuse_roster, resource_key
from fairwarning.core.transitions import Cancelled, InstanceDeleted, RosterDeclared, Scheduled

Names = Collection[InstanceName]


def declare(draft: Draft, command: Declare, now: Instant) -> None:
    scope, wanted, unwarned = draft.scope, command.roster, command.without_notice
    refuse_declaration(scope, wanted, force=command.force, without_notice=unwarned)
    target = declared(scope, wanted, unwarned)
    for event_id, reason in cancelled_by(scope, wanted, unwarned).items():
        draft.add(Cancelled(event_id=event_id, reason=reason, at_ms=now))
    for instance in leaving(scope, wanted, unwarned):
        if pending_terminate(draft.scope, instance.name) is None:
            domain = target.instances[instance.name].update_domain
            draft.add(Scheduled(event=_terminate(draft.scope, command, instance, domain, now)))
    for instance in scope.roster.live:
        if not target.has_live(instance.name):
            is_unwarned = is_due_terminate(scope, instance)
            gone = InstanceDeleted(name=instance.name, at_ms=now, without_notice=is_unwarned)
            draft.add(gone)
    target = replace(target, instances=_with_deleted(target, draft.scope.roster))
    if target.is_removed and stayers(replace(draft.scope, roster=target)):
        target = replace(target, is_removed=False)
    if target != draft.scope.roster:
        draft.add(RosterDeclared(roster=target))


def leaving(scope: Scope, wanted: Roster, without_notice: Names = ()) -> tuple[Instance, ...]:
    """Return the instances that `wanted` leaves out but that stay until their Terminate is over."""
    return tuple(
        each
        for each in scope.roster.live
        if not wanted.has_live(each.name)
        and each.name not in without_notice
        and is_due_terminate(scope, each)
    )


def _terminate(
    scope: Scope, command: Declare, instance: Instance, update_domain: int, now: Instant
) -> Event:
    """Return the Terminate event of the instance. Raises Refused if the command has no id for it.
    The rules from before the declaration apply, because the declaration may lower the notice.
    """
    event_id = command.terminates.get(instance.name)
    if event_id is None:
        notice_ms = instance.model.terminate_notice_ms or 0
        raise Refused(
            Code.INSTANCE_HAS_NOTICE,
            f"instance {instance.name!r} of {scope.id} is watched and has a terminate notice of "
            f"{human_ms(notice_ms)}; delete it, so that it is warned first",
        )
    delete = Operate(event_id=event_id, kind=OperationKind.DELETE, instance=instance.name)
    return replace(operation_event(scope, delete, now), update_domain=update_domain)


def declared(scope: Scope, wanted: Roster, without_notice: Names = ()) -> Roster:
    """Return the roster after the declaration. It still has the instances in `leaving`."""
    before = scope.roster
    model = declared_model(before, wanted)
    live = {each.name: _kept(before, each, model) for each in wanted.live}
    live |= {each.name: _placed(each, wanted) for each in leaving(scope, wanted, without_notice)}
    target = replace(wanted, model=model, instances=live)
    numbers = (number_of(target, name) for name in live)
    return replace(
        target,
        next_number=max(
            _used_numbers(before, wanted),
            wanted.next_number,
            *(n + 1 for n in numbers if n is not None),
        ),
        instances=_with_deleted(target, before),
    )


def _used_numbers(before: Roster, wanted: Roster) -> int:
    """Return how many numbers have been given to instances. These numbers are never used again."""
    is_another_kind = before.is_numbered != wanted.is_numbered
    return 0 if before.is_gone or is_another_kind else before.next_number


def _placed(instance: Instance, wanted: Roster) -> Instance:
    """Return the instance with its present domains, or others if there are fewer domains now."""
    return replace(
        instance,
        update_domain=instance.update_domain % max(wanted.update_domains, 1),
        fault_domain=instance.fault_domain % max(wanted.fault_domains, 1),
    )


def declared_model(before: Roster, wanted: Roster) -> Model:
    """Return the declared model. For an existing scale set, only the terminate notice is new."""
    rest = before.model if before.is_standing else wanted.model
    return next_model(
        before.model,
        terminate_notice_ms=wanted.model.terminate_notice_ms,
        reimage_notice_ms=rest.reimage_notice_ms,
        profile=rest.profile,
    )


def _kept(before: Roster, wanted: Instance, model: Model) -> Instance:
    if not before.has_live(wanted.name):
        return replace(wanted, model=model, power=Power.RUNNING)
    known = before.instances[wanted.name]
    return replace(wanted, model=known.model, power=known.power)


def _with_deleted(target: Roster, before: Roster) -> Mapping[InstanceName, Instance]:
    gone = {each.name: each for each in before.instances.values() if not each.is_live}
    live = {each.name: each for each in target.live}
    return live | {name: each for name, each in gone.items() if name not in live}


def refuse_declaration(
    scope: Scope, wanted: Roster, *, force: bool, without_notice: Names = ()
) -> None:
    """Raise Refused if the declaration breaks a rule. Only the store can check addresses."""
    before = scope.roster
    _refuse_another(scope, wanted)
    target = declared(scope, wanted, without_notice)
    refuse_roster(scope.id, target)
    _refuse_lost_notice(scope, target)
    _refuse_used_number(scope, target)
    for event in scope.in_phase(Phase.STARTED):
        _refuse_under(event, before, target)
    doomed = cancelled_by(scope, wanted, without_notice)
    if doomed and not force:
        event_id, reason = next(iter(doomed.items()))
        raise Refused(
            Code.INSTANCE_HAS_EVENT,
            f"event {event_id} would be cancelled ({reason}); wait for it to end, cancel it, or "
            "declare with --force",
        )


def refuse_overtaken(scope: Scope, before: Roster | None) -> None:
    """Raise Refused if the roster is no longer `before`: the declaration would undo the change."""
    if before is not None and before != scope.roster:
        raise Refused(
            Code.ROSTER_CHANGED,
            f"{scope.id} was changed meanwhile; look at it again, then repeat what you asked for",
        )


def _refuse_another(scope: Scope, wanted: Roster) -> None:
    before = scope.roster
    if resource_key(before) != resource_key(wanted):
        raise Refused(
            Code.FLEET_INVALID,
            f"{scope.id} is {'/'.join(resource_key(before))} and cannot become "
            f"{'/'.join(resource_key(wanted))}; declare that under its own name",
        )
    if before.live and before.is_numbered != wanted.is_numbered:
        raise Refused(
            Code.FLEET_INVALID,
            f"{scope.id} cannot change between uniform and flexible while it has instances; "
            "remove it first",
        )


def _refuse_used_number(scope: Scope, target: Roster) -> None:
    """Raise Refused if the number of a new instance was used before by this scale set."""
    before = scope.roster
    used = _used_numbers(before, target)
    for instance in target.live:
        number = number_of(target, instance.name)
        is_new = not before.has_live(instance.name)
        if is_new and number is not None and number < used:
            raise Refused(
                Code.INSTANCE_EXISTS,
                f"scope {scope.id} had an instance {instance.name!r}, and a number is given out "
                f"once; the next is '{target.resource}_{before.next_number}'",
            )


def _refuse_lost_notice(scope: Scope, target: Roster) -> None:
    """Raise Refused if an instance that is due a Terminate event would become Spot and lose it."""
    for known in scope.roster.live:
        becomes_spot = (
            target.has_live(known.name) and target.instances[known.name].priority is Priority.SPOT
        )
        if becomes_spot and is_due_terminate(scope, known):
            raise Refused(
                Code.TERMINATE_NOT_FOR_SPOT,
                f"instance {known.name!r} has a terminate notice, and a Spot instance gets no "
                "Terminate events; upgrade it to a model without the notice first, or declare the "
                "Spot instances as another scale set",
            )


def _refuse_under(event: Event, before: Roster, target: Roster) -> None:
    changed = _changed_for_event(event, before, target) or _changed_for_driver(
        event, before, target
    )
    if changed is not None:
        raise Refused(
            Code.EVENT_STARTED,
            f"event {event.id} has started and cannot be taken back ({changed}); wait for it to "
            "end, then declare again",
        )


def _changed_for_driver(event: Event, before: Roster, target: Roster) -> str | None:
    """Return what the driver would not recognise when asked about the started event, or None."""
    if (before.driver, before.driver_settings) != (target.driver, target.driver_settings):
        return "its driver would change"
    if before.hooks != target.hooks:
        return "its hooks would change"
    for name in event.resources:
        known, now = before.instances.get(name), target.instances.get(name)
        if known is not None and now is not None and known.handle != now.handle:
            return f"the handle of instance {name} would change"
    return None


def cancelled_by(scope: Scope, wanted: Roster, without_notice: Names = ()) -> dict[EventId, str]:
    """Return the scheduled events that a forced declaration cancels, each with the reason."""
    target = declared(scope, wanted, without_notice)
    disturbed = (
        (event.id, _changed_for_event(event, scope.roster, target))
        for event in scope.in_phase(Phase.SCHEDULED)
    )
    return {event_id: reason for event_id, reason in disturbed if reason is not None}


def _changed_for_event(event: Event, before: Roster, target: Roster) -> str | None:
    for name in event.resources:
        was, stays = before.has_live(name), target.has_live(name)
        if was and not stays:
            return f"instance {name} was removed"
        if stays and not was:
            return f"instance {name} was declared anew"
        domain = target.instances[name].update_domain if stays else event.update_domain
        # An instance that is being deleted blocks no update domain, so it may be moved.
        if domain != event.update_domain and not takes_away(event):
            return f"instance {name} was moved to update domain {domain}"
    return None
