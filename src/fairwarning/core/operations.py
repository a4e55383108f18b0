"""How many user operations may be pending at once in a subscription.

Only those that disturb an instance and leave it in place are counted, as Azure counts the
maintenance that its users ask for. A scale set of any size can be deleted at once, and what
runs at once was never pending.
"""

from fairwarning.core.commands import Command, Operate, OperateAll
from fairwarning.core.model import OperationKind, Phase, Scope
from fairwarning.core.refusals import Code, Refused

OPERATIONS_PENDING_MAX = 10
_COUNTED = frozenset({OperationKind.RESTART, OperationKind.REDEPLOY, OperationKind.REIMAGE})


def is_counted(command: Command) -> bool:
    """Whether the limit has a say in this command."""
    return isinstance(command, Operate | OperateAll) and command.kind in _COUNTED


def pending_operations(scope: Scope) -> int:
    """Announced and not yet started."""
    return sum(
        each.operation in _COUNTED and each.announced for each in scope.in_phase(Phase.SCHEDULED)
    )


def refuse_over_limit(before: Scope, after: Scope, pending: int, pending_max: int) -> None:
    """`pending` counts the whole subscription before this change; a limit of 0 is none."""
    added = pending_operations(after) - pending_operations(before)
    if not pending_max or added <= 0:
        return
    if pending + added > pending_max:
        raise Refused(
            Code.TOO_MANY_OPERATIONS,
            f"{pending} user operations are pending in subscription {before.roster.subscription}, "
            f"this would add {added}, and {pending_max} are allowed; ask for fewer at once, "
            "approve or cancel one, or wait for it",
        )
