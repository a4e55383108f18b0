"""Checks that only one update domain is hit at a time, and the Terminate barrier: promises 3, 8."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from fairwarning.live_check.checks.evidence import ENDS, EventHistory, Evidence, Finding
from fairwarning.live_check.records import DriverCall

ONE_DOMAIN = "3 one update domain at a time"
BARRIER = "8 terminate barrier"


class Impact(NamedTuple):
    """An impact that really happened, with its times by the driver's own clock."""

    event: EventHistory
    began_s: float
    ended_s: float
    instances: frozenset[str]
    domains: frozenset[int]


def check_domains(evidence: Evidence) -> Iterator[Finding]:
    by_scope: dict[str, list[Impact]] = defaultdict(list)
    for impact in _impacts(evidence):
        by_scope[impact.event.scope].append(impact)
        if len(impact.domains) > 1:
            text = f"it has instances of the domains {sorted(impact.domains)}"
            yield Finding(ONE_DOMAIN, impact.event.id, text)
    for impacts in by_scope.values():
        yield from _overlaps(evidence, impacts)


def _overlaps(evidence: Evidence, impacts: list[Impact]) -> Iterator[Finding]:
    under_way: list[Impact] = []
    for impact in sorted(impacts, key=lambda each: each.began_s):
        under_way = [each for each in under_way if each.ended_s > impact.began_s]
        for other in under_way:
            # A failure that already happened does not wait for other domains.
            if not evidence.is_happened_already(_started_last(other.event, impact.event)):
                yield from _overlap(other, impact)
        under_way.append(impact)


def _started_last(one: EventHistory, other: EventHistory) -> EventHistory:
    """Returns the event that started later according to the history."""
    return max(one, other, key=lambda each: [line.place for line in each.all("Started")])


def _overlap(first: Impact, second: Impact) -> Iterator[Finding]:
    both = f"{first.event.id} was still under way"
    shared = first.instances & second.instances
    if shared and first.event.id != second.event.id:
        text = f"it hit {', '.join(sorted(shared))} while {both}"
        yield Finding(ONE_DOMAIN, second.event.id, text)
    elif first.event.is_platform and second.event.is_platform and first.domains != second.domains:
        text = f"it hit domain {sorted(second.domains)} while {both} in {sorted(first.domains)}"
        yield Finding(ONE_DOMAIN, second.event.id, text)


def _impacts(evidence: Evidence) -> Iterator[Impact]:
    for key, calls in evidence.calls.items():
        event = evidence.events.get(key)
        if event is None:
            continue
        orders = {call.pid: call for call in calls if call.what == "do"}
        ends = {call.pid: call for call in calls if call.what == "end"}
        for begin in (call for call in calls if call.what == "begin"):
            yield _impact(event, begin, orders[begin.pid], ends.get(begin.pid))


def _impact(
    event: EventHistory, begin: DriverCall, order: DriverCall, end: DriverCall | None
) -> Impact:
    return Impact(
        event=event,
        began_s=begin.at.mono_s,
        # A program that was killed logs no end, so it is unknown how long it ran.
        ended_s=begin.at.mono_s if end is None else end.at.mono_s,
        instances=frozenset(each.name for each in order.instances),
        domains=frozenset(each.domain for each in order.instances),
    )


def check_barrier(evidence: Evidence) -> Iterator[Finding]:
    """Checks that a Terminate starts before NotBefore only if all others are approved too."""
    deletes = [
        each for each in evidence.events.values() if each.type == "Terminate" and each.is_announced
    ]
    for event in deletes:
        started = event.first("Started")
        if started is None or evidence.is_happened_already(event):
            continue
        at_ms = started.entry.at_ms
        if at_ms >= event.not_before_ms:
            continue
        holders = [
            other.id
            for other in deletes
            if other.scope == event.scope
            and other.not_before_ms > at_ms
            and _was_undecided(other, started.place)
        ]
        if holders:
            text = f"it started before NotBefore while {', '.join(holders)} was not approved"
            yield Finding(BARRIER, event.id, text)


def _was_undecided(event: EventHistory, place: int) -> bool:
    """Returns whether the event was announced, but not yet approved, before this `place`."""
    announced = event.first("Scheduled")
    if announced is None or announced.place > place:
        return False
    decided = event.first("Approved", "Started", *ENDS)
    return decided is None or decided.place > place
