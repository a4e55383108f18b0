"""A VM as it stands: the instance in the fleet, and what its owner said of it, if it is its own.

Nothing works in the background, so what was said of a machine that is gone stays until
somebody looks. A namesake of a machine that was deleted here inherits nothing of it.
"""

from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.fleet_view import Machine, machine_called
from fairwarning.azure_api.operations import State
from fairwarning.azure_api.paths import BadPath, ResourcePath, resource_id, resource_path
from fairwarning.azure_api.request import Arm
from fairwarning.azure_api.resource_store import Kept
from fairwarning.core.model import ENGINE
from fairwarning.engine.protocols import RecordChanged

TYPE = "Microsoft.Compute/virtualMachines"


class Standing(NamedTuple):
    machine: Machine
    kept: Kept | None
    state: State
    """Of the last operation on it."""

    @property
    def is_going(self) -> bool:
        return self.kept is not None and self.kept.is_going


def machine_id(machine: Machine) -> str:
    roster = machine.scope.roster
    return resource_id(roster.subscription, roster.resource_group, TYPE, machine.instance.name)


async def standing(arm: Arm, path: ResourcePath) -> Standing | None:
    """None if there is no such VM."""
    machine = await machine_called(arm, path.subscription, path.group, path.name)
    kept = await arm.shelf.find(path.id)
    if machine is None:
        await _forget(arm, kept)
        return None
    return await of_machine(arm, machine, kept)


async def of_machine(arm: Arm, machine: Machine, kept: Kept | None) -> Standing:
    """The same where both were read already."""
    state = await arm.operations.state_of_id(kept.operation if kept else "")
    if kept is not None and kept.is_going and state.is_over:
        if state.status == "Succeeded":
            await _forget(arm, kept)
            return Standing(machine, None, state)
        kept = replace(kept, is_going=False)
    return Standing(machine, kept, state)


async def standing_at(arm: Arm, id: str) -> Standing | None:
    """By an id that a body holds."""
    try:
        path = resource_path(id)
    except BadPath:
        return None
    return await standing(arm, path) if path.key == TYPE.lower() else None


async def _forget(arm: Arm, kept: Kept | None) -> None:
    if kept is None:
        return
    try:
        await arm.shelf.drop(kept, by=ENGINE)
    except RecordChanged:
        return  # A new machine of that name came this instant.
