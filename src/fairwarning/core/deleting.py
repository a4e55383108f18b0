"""This module tells which instances are about to be deleted.

They live until they are gone, but no capacity counts them.
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
    """Whether the event deletes its instance because the owner asked for that."""
    is_asked = event.type is EventType.TERMINATE and event.source is Source.USER
    return is_asked or event.operation is OperationKind.DELETE


def leavers(scope: Scope) -> frozenset[InstanceName]:
    """The instances whose delete is pending or under way."""
    asked = (each for each in scope.unfinished if takes_away(each))
    return frozenset(name for each in asked for name in each.resources)


def stayers(scope: Scope) -> frozenset[InstanceName]:
    """The live instances that no delete and no Terminate event is about to take away."""
    ends = (each for each in scope.unfinished if each.type is EventType.TERMINATE)
    going = leavers(scope).union(*(each.resources for each in ends))
    return frozenset(each.name for each in scope.roster.live) - going


def is_due_terminate(scope: Scope, instance: Instance) -> bool:
    """Whether the instance may leave only through a Terminate event (promise 2).

    Where nobody watches, Azure announces nothing, and so do we. A delete that was announced
    stays one, even if the instance has been upgraded to a model without notice since.
    """
    if not scope.is_activated:
        return False
    pending = pending_terminate(scope, instance.name)
    is_announced = pending is not None and pending.announced and takes_away(pending)
    return is_announced or has_terminate_notice(scope.roster, instance)


def pending_terminate(scope: Scope, name: InstanceName) -> Event | None:
    """The Terminate event by which the instance already leaves, whoever asked for it."""
    pending = (
        each
        for each in scope.unfinished
        if each.type is EventType.TERMINATE and name in each.resources
    )
    return next(pending, None)
