"""This module computes how long a step takes at most, before it is announced."""

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
"""The duration that a plan assumes if it is unknown. It is that of the simulated driver."""

SPARE_MS = 10 * SECOND_MS
"""The time at the end of a window that no plan uses. One half is for events that start a little
late, the other half for withdrawing events that could not start.
"""


def notice_ms(spec: RolloutSpec, roster: Roster) -> int:
    """Return the notice of a step: the rollout's, but at least the minimum unless it is a test."""
    minimum_ms = minimum_notice_ms(roster.policy, spec.type)
    if spec.notice_ms is None:
        return minimum_ms
    return spec.notice_ms if roster.test else max(spec.notice_ms, minimum_ms)


def not_before(spec: RolloutSpec, roster: Roster, announced: Instant) -> Instant:
    return to_whole_second(later(announced, notice_ms(spec, roster)))


def known_duration_s(spec: RolloutSpec) -> int:
    """Return the duration that the event shows. It is -1 if the duration is unknown."""
    if spec.duration_s is not None:
        return spec.duration_s
    return PLATFORM_DURATION_S.get(spec.type, -1)


def known_duration_ms(spec: RolloutSpec) -> int:
    return max(known_duration_s(spec), 0) * SECOND_MS


def needed_ms(spec: RolloutSpec, roster: Roster) -> int:
    """Return the time from the announcement to the end of the impact, including the spare time."""
    return notice_ms(spec, roster) + SECOND_MS + known_duration_ms(spec) + SPARE_MS


def latest_start(spec: RolloutSpec, closes: Instant) -> Instant:
    """Return the latest instant at which an event may start if its window closes at `closes`."""
    return Instant(closes - 1 - known_duration_ms(spec) - SPARE_MS // 2)


def targets(roster: Roster, step: RolloutStep) -> tuple[Instance, ...]:
    """Return the instances of the step that are live and still in its update domain."""
    found = (roster.instances.get(name) for name in step.instances)
    return tuple(
        each
        for each in found
        if each is not None and each.is_live and each.update_domain == step.update_domain
    )
