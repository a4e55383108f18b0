"""This module has a limit for everything that a caller can make grow, and the engine's times."""

from dataclasses import dataclass

from fairwarning.core.commands import Command, Operate, OperateAll
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.model import OperationKind, Phase, Scope
from fairwarning.core.refusals import Code, Refused

SCOPE_INSTANCES_MAX = 100
"""How many instances a placement group holds (Azure's limit)."""
FLEXIBLE_NAME_CHARS_MAX = 44
"""The length of a name that a flexible scale set makes (Azure's limit); other names have up to
64."""
FLEXIBLE_SET_CHARS_MAX = FLEXIBLE_NAME_CHARS_MAX - len("_12345678")
SCOPE_EVENTS_MAX = 1_000
FINISHED_KEPT_MAX = 4
"""How many finished events stay in their scope; older ones are in the store's history alone."""
DELETED_KEPT_MAX = 100
DESCRIPTION_CHARS_MAX = 1_024
EVENT_DURATION_S_MAX = 7 * 24 * 3600
NOT_BEFORE_AHEAD_MS_MAX = 366 * DAY_MS
INSTANCE_ADDRESSES_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The durations that the rules run on. An operator may set each."""

    idle_ms: int = 24 * HOUR_MS
    """How long a scope stays activated without a request."""
    idle_grace_ms: int = 15 * MINUTE_MS
    """Requests are noted in the store no more often than this, so the switch waits that long."""
    retention_ms: int = DAY_MS
    """How long finished events and deleted instances stay in their scope, if they are not many."""
    lease_ms: int = 30 * SECOND_MS
    """How long a node may be silent before another takes over its driver work."""
    attempt_ms: int = 30 * MINUTE_MS
    """How long one try of a driver may take, beyond the event's own duration."""
    attempts_max: int = 5
    """After how many failures of the driver the event ends as failed."""
    handovers_max: int = 100
    """How many attempts there are in all, also those that a dying node interrupted."""
    backoff_ms: int = SECOND_MS
    backoff_ms_max: int = MINUTE_MS


DEFAULT_TIMING = Timing()


def refuse_text(what: str, text: str) -> None:
    """Refuse text that cannot be stored and sent: one with half of a surrogate pair, which JSON
    allows.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(
            Code.TEXT_INVALID,
            f"the {what} holds a character that is none (a lone surrogate); take it out",
        ) from None


OPERATIONS_PENDING_MAX = 10
"""How many user operations may be pending at once in a subscription."""
_COUNTED = frozenset({OperationKind.RESTART, OperationKind.REDEPLOY, OperationKind.REIMAGE})


def is_counted(command: Command) -> bool:
    """Whether the limit on pending operations applies to this command."""
    return isinstance(command, Operate | OperateAll) and command.kind in _COUNTED


def pending_operations(scope: Scope) -> int:
    """How many user operations of the scope are announced and have not started."""
    return sum(
        each.operation in _COUNTED and each.announced for each in scope.in_phase(Phase.SCHEDULED)
    )


def refuse_over_limit(before: Scope, after: Scope, pending: int, pending_max: int) -> None:
    """Refuse if too many operations are pending. `pending` counts the whole subscription before
    this change; a limit of 0 is none.
    """
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
