"""What was removed counts as removed only as long as nobody of it stays."""

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import (
    Approve,
    Cancel,
    Command,
    Declare,
    ReportDone,
    ReportFailure,
    Schedule,
    Tick,
)
from fairwarning.core.decide import decide
from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import EventType, NodeId, Scope, operator_actor
from tests.core.builders import E1, T0, after, event_id, names, workers

W0, W1 = names("workers_0", "workers_1")
IDS = {W0: event_id(10), W1: event_id(11)}
ME = operator_actor("me")


def removed() -> Scope:
    """Two watched instances; each leaves by a Terminate event."""
    scope = workers(2)
    nobody = replace(scope.roster, instances={}, is_removed=True)
    found = after(scope, Declare(roster=nobody, terminates=IDS))
    assert found.roster.is_removed
    return found


def test_a_cancelled_removal_is_none() -> None:
    scope = after(removed(), Cancel(event_id=IDS[W1]))
    assert not scope.roster.is_removed
    assert not after(scope, Cancel(event_id=IDS[W0])).roster.is_removed


def test_neither_is_one_that_failed() -> None:
    scope = after(removed(), *(Approve(event_id=id, by=ME) for id in IDS.values()))
    once = Timing(attempts_max=1)
    scope = decide(scope, Tick(), T0, timing=once, node=NodeId("node")).scope
    assert scope.roster.is_removed
    failure = ReportFailure(event_id=IDS[W0], attempt=1, reason="no")
    scope = decide(scope, failure, T0, timing=once).scope
    assert scope.events[IDS[W0]].phase == "failed"
    assert not scope.roster.is_removed


def test_the_end_of_another_event_changes_nothing() -> None:
    reboot = Schedule(event_id=E1, type=EventType.REBOOT, targets=(W0,))
    scope = after(removed(), reboot, Cancel(event_id=E1))
    assert scope.roster.is_removed


def test_what_ends_with_the_last_instance_changes_nothing() -> None:
    reboot = Schedule(event_id=E1, type=EventType.REBOOT, targets=(W0,))
    scope = after(removed(), reboot, at=T0)
    at = Instant(T0 + 6 * MINUTE_MS)
    done: list[Command] = [ReportDone(event_id=id) for id in IDS.values()]
    scope = after(scope, Tick(), *done, at=at)
    assert not scope.roster.live
    assert scope.events[E1].phase == "cancelled"
    assert scope.roster.is_removed


@pytest.mark.parametrize("kept", [(), (W0,), (W0, W1)])
def test_nothing_is_removed_in_which_somebody_stays(kept: tuple[str, ...]) -> None:
    scope = workers(2)
    wanted = {name: each for name, each in scope.roster.instances.items() if name in kept}
    roster = replace(scope.roster, instances=wanted, is_removed=True)
    found = after(scope, Declare(roster=roster, terminates=IDS))
    assert found.roster.is_removed is not bool(kept)
