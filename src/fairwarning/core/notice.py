"""This module has the notice that each type of event needs, and checks it (promise 2)."""

from collections.abc import Iterable, Mapping

from fairwarning.common.durations import human_ms, parse_duration_ms
from fairwarning.core.instants import MINUTE_MS, SECOND_MS, Instant, later, to_whole_second
from fairwarning.core.limits import NOT_BEFORE_AHEAD_MS_MAX
from fairwarning.core.model import (
    EventType,
    Instance,
    OperationKind,
    Policy,
    Priority,
    Roster,
    ScopeKind,
)
from fairwarning.core.refusals import Code, Refused

# Azure documents these times, and the range of the terminate notice.
MINIMUM_NOTICE_MS: Mapping[EventType, int] = {
    EventType.FREEZE: 15 * MINUTE_MS,
    EventType.REBOOT: 15 * MINUTE_MS,
    EventType.REDEPLOY: 10 * MINUTE_MS,
    EventType.PREEMPT: 30 * SECOND_MS,
    EventType.TERMINATE: 5 * MINUTE_MS,
}
TERMINATE_NOTICE_MS_MIN = 5 * MINUTE_MS  # The range that Azure allows.
TERMINATE_NOTICE_MS_MAX = 15 * MINUTE_MS
REIMAGE_NOTICE_MS = 15 * MINUTE_MS
"""The notice of a reimage. Azure allows no other."""


def minimum_notice_ms(policy: Policy, event_type: EventType) -> int:
    return policy.notice_ms.get(event_type, MINIMUM_NOTICE_MS[event_type])


def has_terminate_notice(roster: Roster, instance: Instance) -> bool:
    """Return whether a delete of this instance of an activated scope is announced, as in Azure."""
    is_regular_member = roster.kind is ScopeKind.SCALE_SET and instance.priority is Priority.REGULAR
    return is_regular_member and instance.model.terminate_notice_ms is not None


def scheduled_notice_ms(roster: Roster, event_type: EventType, targets: Iterable[Instance]) -> int:
    """Return the notice of a platform event whose command gives none. It is the minimum notice, but
    for a Terminate event the longest terminate notice of the instances.
    """
    own = [each.model.terminate_notice_ms for each in targets]
    said = [notice_ms for notice_ms in own if notice_ms is not None]
    if event_type is not EventType.TERMINATE or not said:
        return minimum_notice_ms(roster.policy, event_type)
    return max(roster.policy.notice_ms.get(event_type, 0), *said)


def operation_notice_ms(
    roster: Roster, kind: OperationKind, event_type: EventType, instance: Instance
) -> int:
    """Return the notice of a user operation. For a delete or a reimage it is the one in the model
    of the instance, or the policy's minimum if that is longer.
    """
    floor_ms = roster.policy.notice_ms.get(event_type, 0)
    if kind is OperationKind.DELETE:
        return max(floor_ms, instance.model.terminate_notice_ms or TERMINATE_NOTICE_MS_MIN)
    if kind is OperationKind.REIMAGE:
        return max(floor_ms, instance.model.reimage_notice_ms or REIMAGE_NOTICE_MS)
    return minimum_notice_ms(roster.policy, event_type)


def refuse_lowered_notice(policy: Policy, *, test: bool) -> None:
    for event_type, notice_ms in policy.notice_ms.items():
        if event_type not in MINIMUM_NOTICE_MS:
            raise Refused(
                Code.NOT_SCHEDULABLE, f"{event_type} is never announced; leave its notice out"
            )
        floor_ms = 0 if test else MINIMUM_NOTICE_MS[event_type]
        if notice_ms < floor_ms:
            raise Refused(
                Code.NOTICE_NOT_LOWERABLE,
                f"the minimum notice of {event_type} is {human_ms(floor_ms)}; it can be "
                f"raised, and lowered to {human_ms(max(notice_ms, 0))} only in a fleet "
                "marked `test = true`",
            )
        if notice_ms > NOT_BEFORE_AHEAD_MS_MAX:
            raise Refused(
                Code.NOTICE_NOT_LOWERABLE,
                f"a minimum notice of {human_ms(notice_ms)} for {event_type} is longer "
                f"than the farthest NotBefore; use at most "
                f"{human_ms(NOT_BEFORE_AHEAD_MS_MAX)}",
            )


def not_before(
    roster: Roster,
    event_type: EventType,
    now: Instant,
    *,
    notice_ms: int | None,
    not_before_ms: Instant | None,
) -> Instant:
    """Return the NotBefore of the event. Raises Refused if it is too early or too far ahead."""
    floor_ms = 0 if roster.test else minimum_notice_ms(roster.policy, event_type)
    if notice_ms is None:
        notice_ms = minimum_notice_ms(roster.policy, event_type)
    chosen = to_whole_second(later(now, notice_ms) if not_before_ms is None else not_before_ms)
    if chosen < now:
        raise Refused(
            Code.NOTICE_TOO_SHORT,
            f"NotBefore would be {human_ms(now - chosen)} in the past; choose a later time",
        )
    if chosen < now + floor_ms:
        raise Refused(
            Code.NOTICE_TOO_SHORT,
            f"{event_type} needs at least {human_ms(floor_ms)} of notice and this "
            f"leaves {human_ms(max(chosen - now, 0))}; choose a later time, or mark "
            "the fleet `test = true` to rehearse with less",
        )
    if chosen > now + NOT_BEFORE_AHEAD_MS_MAX:
        raise Refused(
            Code.NOT_BEFORE_TOO_FAR,
            f"NotBefore may be at most {human_ms(NOT_BEFORE_AHEAD_MS_MAX)} ahead; "
            "announce the event nearer to its time",
        )
    return chosen


def parse_terminate_notice_ms(said: object) -> int:
    """Return the `notBeforeTimeout` of a scale set. Raises Refused if it is not 5 to 15 minutes."""
    notice_ms = _duration_ms(said, Code.TERMINATE_NOTICE_INVALID, "choose from PT5M to PT15M")
    refuse_terminate_notice(notice_ms)
    return notice_ms


def parse_reimage_notice_ms(said: object) -> int:
    notice_ms = _duration_ms(said, Code.REIMAGE_NOTICE_INVALID, "choose PT15M, or leave it out")
    refuse_reimage_notice(notice_ms)
    return notice_ms


def _duration_ms(said: object, code: Code, advice: str) -> int:
    notice_ms = parse_duration_ms(said) if isinstance(said, str) else None
    if notice_ms is None:
        raise Refused(code, f"the notice {repr(said)[:60]} is no ISO 8601 duration; {advice}")
    return notice_ms


def refuse_terminate_notice(notice_ms: int) -> None:
    if not TERMINATE_NOTICE_MS_MIN <= notice_ms <= TERMINATE_NOTICE_MS_MAX:
        raise Refused(
            Code.TERMINATE_NOTICE_INVALID,
            f"the terminate notice {human_ms(max(notice_ms, 0))} is out of range; "
            "choose from PT5M to PT15M",
        )


def refuse_reimage_notice(notice_ms: int) -> None:
    if notice_ms != REIMAGE_NOTICE_MS:
        raise Refused(
            Code.REIMAGE_NOTICE_INVALID,
            f"the reimage notice {human_ms(max(notice_ms, 0))} is not possible; choose "
            "PT15M, or leave it out",
        )
