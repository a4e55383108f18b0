"""How many user operations may be pending at once in a subscription."""

from fairwarning.core.model import Phase, Scope
from fairwarning.core.refusals import Code, Refused

OPERATIONS_PENDING_MAX = 10


def pending_operations(scope: Scope) -> int:
    """Announced and not yet started. What runs at once was never pending."""
    return sum(
        each.operation is not None and each.announced for each in scope.in_phase(Phase.SCHEDULED)
    )


def refuse_over_limit(before: Scope, after: Scope, pending: int, pending_max: int) -> None:
    """`pending` counts the whole subscription before this change; a limit of 0 is none."""
    if not pending_max or pending_operations(after) <= pending_operations(before):
        return
    if pending >= pending_max:
        raise Refused(
            Code.TOO_MANY_OPERATIONS,
            f"{pending} user operations are pending in subscription {before.roster.subscription} "
            f"and {pending_max} are allowed; approve or cancel one, or wait for it",
        )
