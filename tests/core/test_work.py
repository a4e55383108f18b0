"""How often an impact changes hands before it is given up."""

from fairwarning.core.commands import Operate, Tick
from fairwarning.core.decide import decide
from fairwarning.core.instants import Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import InstanceName, NodeId, OperationKind, Phase
from tests.core.builders import E1, T0, workers

TIMING = Timing(handovers_max=3)
NODE = NodeId("n1")


def test_an_impact_that_every_node_loses_is_given_up_after_so_many_attempts() -> None:
    restart = Operate(event_id=E1, kind=OperationKind.RESTART, instance=InstanceName("workers_0"))
    scope = decide(workers(activated=False), restart, T0, timing=TIMING, node=NODE).scope
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
