"""How often an impact changes hands before it is given up."""

import pytest

from fairwarning.core.commands import (
    Operate,
    Release,
    RenewLease,
    ReportFailure,
    Schedule,
    Tick,
)
from fairwarning.core.decide import decide
from fairwarning.core.instants import Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import EventType, InstanceName, NodeId, OperationKind, Phase
from tests.core.builders import E1, T0, names, web, workers

TIMING = Timing(handovers_max=3)
NODE = NodeId("n1")
RESTART = Operate(event_id=E1, kind=OperationKind.RESTART, instance=InstanceName("workers_0"))


@pytest.mark.parametrize("word", [RenewLease, Release])
def test_a_late_word_about_an_earlier_attempt_of_the_same_node_changes_nothing(
    word: type[RenewLease | Release],
) -> None:
    scope = decide(workers(activated=False), RESTART, T0, timing=TIMING, node=NODE).scope
    lost = Instant(T0 + TIMING.lease_ms)
    scope = decide(scope, Tick(), lost, timing=TIMING, node=NODE).scope
    for node, attempt in ((NODE, 1), (NodeId("n2"), 2)):
        late = word(event_id=E1, attempt=attempt, node=node)
        assert decide(scope, late, Instant(lost + 5), timing=TIMING).transitions == ()
    mine = word(event_id=E1, attempt=2, node=NODE)
    assert decide(scope, mine, Instant(lost + 5), timing=TIMING).transitions != ()


def test_an_impact_that_every_node_loses_is_given_up_after_so_many_attempts() -> None:
    scope = decide(workers(activated=False), RESTART, T0, timing=TIMING, node=NODE).scope
    attempts = []
    now = T0
    while (work := scope.events[E1].work) is not None:
        attempts.append(work.attempt)
        now = Instant(now + TIMING.lease_ms)
        scope = decide(scope, Tick(), now, timing=TIMING, node=NODE).scope
    assert attempts == [1, 2, 3]
    event = scope.events[E1]
    assert event.phase is Phase.FAILED
    assert event.outcome == "gave up after attempt 3: every node that had it fell silent"


def test_no_lease_lasts_longer_than_the_attempt_which_has_the_time_that_the_event_takes() -> None:
    timing = Timing(lease_ms=30_000, attempt_ms=60_000)
    freeze = Schedule(
        event_id=E1,
        type=EventType.FREEZE,
        targets=names("web-0"),
        duration_s=20,
        already_happened=True,
    )
    scope = decide(web(), freeze, T0, timing=timing, node=NODE).scope
    renew = RenewLease(event_id=E1, attempt=1, node=NODE)
    leases = []
    for second in (0, 25, 50, 65):
        scope = decide(scope, renew, Instant(T0 + second * 1000), timing=timing).scope
        work = scope.events[E1].work
        assert work is not None
        assert work.lease_until_ms is not None
        leases.append(work.lease_until_ms - T0)
    assert leases == [30_000, 55_000, 80_000, 80_000]


def test_a_failed_attempt_is_not_tried_again_before_its_time() -> None:
    scope = decide(workers(activated=False), RESTART, T0, timing=TIMING, node=NODE).scope
    failed = ReportFailure(event_id=E1, attempt=1, reason="no")
    change = decide(scope, failed, T0, timing=TIMING, node=NODE)
    assert change.next_deadline_ms == T0 + TIMING.backoff_ms
    early = Instant(T0 + TIMING.backoff_ms - 1)
    scope = decide(change.scope, Tick(), early, timing=TIMING, node=NODE).scope
    work = scope.events[E1].work
    assert work is not None
    assert work.node is None
    scope = decide(scope, Tick(), Instant(early + 1), timing=TIMING, node=NODE).scope
    work = scope.events[E1].work
    assert work is not None
    assert (work.attempt, work.failures) == (2, 1)


def test_a_failure_that_is_reported_again_is_counted_once() -> None:
    """A node that got no answer from the store repeats its report."""
    scope = decide(workers(activated=False), RESTART, T0, timing=TIMING, node=NODE).scope
    failed = ReportFailure(event_id=E1, attempt=1, reason="no")
    scope = decide(scope, failed, T0, timing=TIMING).scope
    assert decide(scope, failed, T0, timing=TIMING).transitions == ()
