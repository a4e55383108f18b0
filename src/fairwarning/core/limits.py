"""This module has the limits of what a caller can make larger, and the times of the engine."""

from dataclasses import dataclass

from fairwarning.core.commands import Command, Operate, OperateAll
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.model import OperationKind, Phase, Scope
from fairwarning.core.refusals import Code, Refused

SCOPE_INSTANCES_MAX = 100
"""The largest number of instances in a placement group (a limit of Azure)."""
FLEXIBLE_NAME_CHARS_MAX = 44
"""The longest name of an instance of a flexible scale set, in Azure. Other names may have 64."""
FLEXIBLE_SET_CHARS_MAX = FLEXIBLE_NAME_CHARS_MAX - len("_12345678")
SCOPE_EVENTS_MAX = 1_000  # Each change writes the whole scope, so it must stay small.
FINISHED_KEPT_MAX = 4
"""How many finished events stay in their scope. Older ones are only in the history of the store."""
DELETED_KEPT_MAX = 100  # As many as a placement group can hold.
DESCRIPTION_CHARS_MAX = 1_024  # Every poll carries the descriptions.
EVENT_DURATION_S_MAX = 7 * 24 * 3600  # A week: no maintenance of one machine takes longer.
NOT_BEFORE_AHEAD_MS_MAX = 366 * DAY_MS  # A year: a later date is most likely a mistake.
INSTANCE_ADDRESSES_MAX = 16  # A VM has few addresses, and all are indexed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The durations and counts that the rules use. An operator may change each of them."""

    idle_ms: int = 24 * HOUR_MS
    """How long a scope stays activated without a request."""
    idle_grace_ms: int = 15 * MINUTE_MS
    """How much longer a silent scope stays activated, because requests are stored with a delay."""
    retention_ms: int = DAY_MS
    """How long finished events and deleted instances stay in their scope, unless too many."""
    lease_ms: int = 30 * SECOND_MS
    """How long a node may be silent before another node takes over its driver work."""
    attempt_ms: int = 30 * MINUTE_MS
    """How long one attempt of a driver may take, in addition to the duration of the event."""
    attempts_max: int = 5
    """The number of failed attempts after which the event ends as failed."""
    handovers_max: int = 100
    """The largest number of attempts in all, including those that were interrupted."""
    backoff_ms: int = SECOND_MS
    backoff_ms_max: int = MINUTE_MS


DEFAULT_TIMING = Timing()


def refuse_text(what: str, text: str) -> None:
    """Raise Refused if the text has a lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(
            Code.TEXT_INVALID,
            f"the {what} holds a character that is none (a lone surrogate); take it out",
        ) from None


def refuse_description(description: str) -> None:
    refuse_text("description", description)
    if len(description) > DESCRIPTION_CHARS_MAX:
        raise Refused(
            Code.DESCRIPTION_TOO_LONG,
            f"the description has {len(description)} characters; use at most "
            f"{DESCRIPTION_CHARS_MAX}",
        )


def refuse_duration(duration_s: int) -> None:
    if not -1 <= duration_s <= EVENT_DURATION_S_MAX:
        raise Refused(
            Code.DURATION_INVALID,
            f"a duration of {duration_s} s is out of range; use 0 to {EVENT_DURATION_S_MAX}, "
            "or -1 for unknown",
        )


OPERATIONS_PENDING_MAX = 10
"""How many user operations may be pending in a subscription, unless an operator changes it."""
_COUNTED = frozenset({OperationKind.RESTART, OperationKind.REDEPLOY, OperationKind.REIMAGE})


def is_counted(command: Command) -> bool:
    """Return whether the limit on pending operations applies to this command."""
    return isinstance(command, Operate | OperateAll) and command.kind in _COUNTED


def pending_operations(scope: Scope) -> int:
    """Return how many user operations of the scope are announced and have not started."""
    return sum(
        each.operation in _COUNTED and each.announced for each in scope.in_phase(Phase.SCHEDULED)
    )


def refuse_over_limit(before: Scope, after: Scope, pending: int, pending_max: int) -> None:
    """Raise Refused if the change makes more than `pending_max` operations pending. 0 is no limit.
    `pending` is the number in the whole subscription before the change.
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
