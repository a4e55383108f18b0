"""Which event starts first, if several may start and only one of them can."""

from fairwarning.core.commands import Schedule, Tick
from fairwarning.core.instants import HOUR_MS, SECOND_MS, Instant, later
from fairwarning.core.model import EventId, EventType, Phase
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
