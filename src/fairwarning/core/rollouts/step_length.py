"""This module says how long one step takes at most, as far as that is known before it
is announced.
"""

from collections.abc import Mapping

from fairwarning.core.instants import SECOND_MS, Instant, later, to_whole_second
from fairwarning.core.model import EventType, Instance, Roster
from fairwarning.core.new_events import PLATFORM_DURATION_S
from fairwarning.core.notice import minimum_notice_ms
from fairwarning.core.rollouts.model import RolloutSpec, RolloutStep

ASSUMED_DURATION_S: Mapping[EventType, int] = {
    EventType.FREEZE: 5,
    EventType.REBOOT: 30,
    EventType.REDEPLOY: 60,
}
"""How long a plan takes an impact to be if nobody says; as long as the simulated driver's."""

SPARE_MS = 10 * SECOND_MS
"""The end of a window that no plan uses: half of it for an event that starts a little late, and
half to take back in time one that could not start at all."""


def notice_ms(spec: RolloutSpec, roster: Roster) -> int:
    """The notice of a step: what was asked for, or more if the scope's minimum was raised since."""
    minimum_ms = minimum_notice_ms(roster.policy, spec.type)
    if spec.notice_ms is None:
        return minimum_ms
    return spec.notice_ms if roster.test else max(spec.notice_ms, minimum_ms)


def not_before(spec: RolloutSpec, roster: Roster, announced: Instant) -> Instant:
    return to_whole_second(later(announced, notice_ms(spec, roster)))


def known_duration_s(spec: RolloutSpec) -> int:
    """The duration that the event will say; -1 if nobody knows it."""
    if spec.duration_s is not None:
        return spec.duration_s
    return PLATFORM_DURATION_S.get(spec.type, -1)


def known_duration_ms(spec: RolloutSpec) -> int:
    return max(known_duration_s(spec), 0) * SECOND_MS


def needed_ms(spec: RolloutSpec, roster: Roster) -> int:
    """The time from the announcement to the end of the impact; NotBefore is rounded up
    to a second.
    """
    return notice_ms(spec, roster) + SECOND_MS + known_duration_ms(spec) + SPARE_MS


def latest_start(spec: RolloutSpec, closes: Instant) -> Instant:
    """When an event of the step must have started; later it is taken back."""
    return Instant(closes - 1 - known_duration_ms(spec) - SPARE_MS // 2)


def targets(roster: Roster, step: RolloutStep) -> tuple[Instance, ...]:
    """The instances of the step that still exist. Instances that came later are not in the plan."""
    found = (roster.instances.get(name) for name in step.instances)
    return tuple(
        each
        for each in found
        if each is not None and each.is_live and each.update_domain == step.update_domain
    )
