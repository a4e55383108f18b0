"""How often an impact changes hands before it is given up."""

import pytest

from fairwarning.core.commands import Operate, Release, RenewLease, Tick
from fairwarning.core.decide import decide
from fairwarning.core.instants import Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import InstanceName, NodeId, OperationKind, Phase
from tests.core.builders import E1, T0, workers

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
