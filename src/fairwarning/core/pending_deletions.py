"""This module finds the instances that are about to be deleted.

Such an instance is live until it is deleted, but it does not count towards the capacity.
"""

from fairwarning.core.model import (
    Event,
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Scope,
    Source,
)
from fairwarning.core.notice import has_terminate_notice


def takes_away(event: Event) -> bool:
    """Return whether the event deletes its instance at the request of the owner."""
    is_asked = event.type is EventType.TERMINATE and event.source is Source.USER
    return is_asked or event.operation is OperationKind.DELETE


def leavers(scope: Scope) -> frozenset[InstanceName]:
    """Return the instances that the owner is deleting: the event is pending or under way."""
    asked = (each for each in scope.unfinished if takes_away(each))
    return frozenset(name for each in asked for name in each.resources)


def stayers(scope: Scope) -> frozenset[InstanceName]:
    """Return the live instances that no pending delete and no Terminate event will remove."""
    ends = (each for each in scope.unfinished if each.type is EventType.TERMINATE)
    going = leavers(scope).union(*(each.resources for each in ends))
    return frozenset(each.name for each in scope.roster.live) - going


def is_due_terminate(scope: Scope, instance: Instance) -> bool:
    """Return whether the instance must not be deleted without a Terminate event (promise 2).

    A scope that is not activated has no such instance, as in Azure. After a delete was announced,
    the instance stays one even if it is upgraded to a model without notice.
    """
    if not scope.is_activated:
        return False
    pending = pending_terminate(scope, instance.name)
    is_announced = pending is not None and pending.announced and takes_away(pending)
    return is_announced or has_terminate_notice(scope.roster, instance)


def pending_terminate(scope: Scope, name: InstanceName) -> Event | None:
    """Return the unfinished Terminate event of the instance, or None."""
    pending = (
        each
        for each in scope.unfinished
        if each.type is EventType.TERMINATE and name in each.resources
    )
    return next(pending, None)
