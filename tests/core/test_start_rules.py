"""Which event starts first, if several may start and only one of them can."""

import pytest

from fairwarning.core.commands import Approve, Command, ReportDone, Schedule, Tick
from fairwarning.core.decide import decide
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later
from fairwarning.core.journal_text import sentence
from fairwarning.core.model import EventId, EventType, Phase, Scope, operator_actor
from fairwarning.core.start_rules import LATE_MS
from fairwarning.core.transitions import Started
from tests.core.builders import E1, E2, T0, after, names, web

DUE = later(T0, HOUR_MS)


def reboot(id: EventId, target: str, due: Instant = DUE) -> Schedule:
    return Schedule(event_id=id, type=EventType.REBOOT, targets=names(target), not_before_ms=due)


def test_of_two_that_are_due_at_once_the_older_one_starts_first() -> None:
    scope = after(web(), reboot(E2, "web-0"))
    scope = after(scope, reboot(E1, "web-1"), at=later(T0, SECOND_MS))
    scope = after(scope, Tick(), at=DUE)
    assert (scope.events[E2].phase, scope.events[E1].phase) == (Phase.STARTED, Phase.SCHEDULED)


def test_the_one_that_is_due_earlier_starts_first_however_young_it_is() -> None:
    scope = after(web(), reboot(E1, "web-0", later(DUE, SECOND_MS)))
    scope = after(scope, reboot(E2, "web-1"), at=later(T0, SECOND_MS))
    scope = after(scope, Tick(), at=later(DUE, SECOND_MS))
    assert (scope.events[E2].phase, scope.events[E1].phase) == (Phase.STARTED, Phase.SCHEDULED)


def started(scope: Scope, command: Command, at: Instant) -> Started:
    (found,) = [
        each for each in decide(scope, command, at).transitions if isinstance(each, Started)
    ]
    return found


@pytest.mark.parametrize(
    ("late_ms", "said"),
    [
        (0, "started (its time had come)"),
        (LATE_MS, "started (its time had come)"),
        (42 * SECOND_MS + 1, "started 42 s late (its time had come)"),
    ],
)
def test_an_event_that_no_engine_could_start_in_time_is_said_to_be_late(
    late_ms: int, said: str
) -> None:
    scope = after(web(), reboot(E1, "web-0"))
    found = started(scope, Tick(), later(DUE, late_ms))
    assert found.late_ms == (late_ms if late_ms > LATE_MS else 0)
    assert sentence(found) == said


def test_an_event_that_waited_for_another_one_is_not_late() -> None:
    scope = after(web(), reboot(E1, "web-0"), reboot(E2, "web-1", later(DUE, SECOND_MS)))
    scope = after(scope, Tick(), at=DUE)
    found = started(scope, ReportDone(event_id=E1), later(DUE, 10 * MINUTE_MS))
    assert (found.event_id, found.late_ms) == (E2, 0)


def test_an_approved_event_is_not_late() -> None:
    scope = after(web(), reboot(E1, "web-0"))
    approve = Approve(event_id=E1, by=operator_actor("ada"))
    assert started(scope, approve, later(DUE, HOUR_MS)).late_ms == 0
