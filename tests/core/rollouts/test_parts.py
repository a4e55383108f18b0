"""How a large rollout is divided, and when another part of it is opened."""

import pytest

from fairwarning.core.instants import Instant
from fairwarning.core.model import ENGINE, EventType, InstanceName, ScopeId
from fairwarning.core.rollouts.model import (
    Rest,
    Rollout,
    RolloutId,
    RolloutPhase,
    RolloutSpec,
    RolloutStep,
)
from fairwarning.core.rollouts.parts import PART_INSTANCES_MAX, Divider, wants_part


def step(scope: str, instances: int) -> RolloutStep:
    names = tuple(InstanceName(f"{scope}-{n}") for n in range(instances))
    return RolloutStep(scope_id=ScopeId(scope), update_domain=0, instances=names)


def test_a_part_ends_when_its_scopes_have_many_instances() -> None:
    """Otherwise a part of a hundred large scopes would be slow to decode and write."""
    divider = Divider()
    small, rest = step("a", PART_INSTANCES_MAX - 1), step("b", 1)
    assert divider.add([small]) == ()
    assert divider.add([rest]) == (small, rest)
    assert divider.add([rest]) == ()


@pytest.mark.parametrize(
    ("phase", "wants"),
    [(RolloutPhase.RUNNING, True), (RolloutPhase.PAUSED, False), (RolloutPhase.CANCELLED, False)],
)
def test_only_a_running_rollout_opens_another_part(phase: RolloutPhase, wants: bool) -> None:
    rollout = Rollout(
        id=RolloutId("r"),
        spec=RolloutSpec(type=EventType.REBOOT),
        phase=phase,
        created_ms=Instant(0),
        created_by=ENGINE,
        steps=(),
        rest=Rest(parts=2),
    )
    assert wants_part(rollout, Instant(0)) is wants
