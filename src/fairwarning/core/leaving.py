"""Who is about to be deleted. They live until they are gone, but no capacity counts them."""

from fairwarning.core.model import Event, EventType, InstanceName, OperationKind, Scope, Source


def takes_away(event: Event) -> bool:
    """Whether its owner asked for the end of the instance."""
    is_asked = event.type is EventType.TERMINATE and event.source is Source.USER
    return is_asked or event.operation is OperationKind.DELETE


def leavers(scope: Scope) -> frozenset[InstanceName]:
    """The instances whose delete is pending or under way."""
    asked = (each for each in scope.unfinished if takes_away(each))
    return frozenset(name for each in asked for name in each.resources)
