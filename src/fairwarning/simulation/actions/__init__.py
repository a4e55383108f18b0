"""What can happen in a world: one function for each kind of step in a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwarning.simulation.actions import (
    clocks,
    commands,
    deliveries,
    disasters,
    fleet,
    polls,
    rollouts,
)

if TYPE_CHECKING:
    from fairwarning.simulation.actions.choices import Action

ACTIONS: dict[str, Action] = {
    **commands.ACTIONS,
    **deliveries.ACTIONS,
    **disasters.ACTIONS,
    **fleet.ACTIONS,
    **polls.ACTIONS,
    **rollouts.ACTIONS,
    **clocks.ACTIONS,
}
