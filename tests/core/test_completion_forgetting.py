"""What a scope still knows of its past: the last few events, for some time."""

from fairwarning.core.commands import Operate, ReportDone, Tick
from fairwarning.core.decide import decide
from fairwarning.core.instants import MINUTE_MS, Instant, later
from fairwarning.core.limits import DEFAULT_TIMING, FINISHED_KEPT_MAX
from fairwarning.core.model import InstanceName, OperationKind, Scope
from tests.core.builders import T0, event_id, workers


def ended_one_by_one(number: int) -> Scope:
    """The highest ids first, so that their order is not that of time."""
    scope = workers(activated=False)
    for nth in range(number):
        id, at = event_id(number - nth), later(T0, nth * MINUTE_MS)
        name = InstanceName("workers_0")
        restart = Operate(event_id=id, kind=OperationKind.RESTART, instance=name)
        scope = decide(scope, restart, at).scope
        scope = decide(scope, ReportDone(event_id=id), at).scope
    return scope


def test_of_many_events_that_have_ended_a_scope_keeps_the_newest() -> None:
    scope = ended_one_by_one(FINISHED_KEPT_MAX + 3)
    newest = [event_id(number) for number in range(1, FINISHED_KEPT_MAX + 1)]
    assert sorted(scope.events) == newest


def test_after_a_day_it_keeps_none_of_them() -> None:
    scope = ended_one_by_one(2)
    (last,) = {each.ended_ms for each in scope.events.values() if each.id == event_id(1)}
    assert last is not None
    until = later(last, DEFAULT_TIMING.retention_ms)
    kept = decide(scope, Tick(), Instant(until - 1)).scope
    assert list(kept.events) == [event_id(1)]
    assert not decide(kept, Tick(), until).scope.events
