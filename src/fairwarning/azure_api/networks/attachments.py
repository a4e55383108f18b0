"""Which VM uses which interface. Both say so, and only what both say holds.

So a VM that goes takes its half of the bond along, and nobody has to clean up.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.networks.subnets import missing_reference
from fairwarning.azure_api.paths import same_id
from fairwarning.azure_api.request import Arm, Json
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.virtual_machines.state import Standing, standing_at
from fairwarning.core.model import Actor
from fairwarning.engine.protocols import RecordChanged

INTERFACES = "microsoft.network/networkinterfaces"


def references(machine: Json) -> list[Json]:
    """What the body of a VM says of its interfaces."""
    return objects_at(machine, "properties", "networkProfile", "networkInterfaces")


def addresses_of(interface: Json) -> list[str]:
    """The primary one first."""
    configurations = objects_at(interface, "properties", "ipConfigurations")
    ordered = sorted(configurations, key=lambda each: not _is_primary(each))
    found = (text_at(each, "properties", "privateIPAddress") for each in ordered)
    return [address for address in found if address]


def _is_primary(configuration: Json) -> bool:
    return object_at(configuration, "properties").get("primary") is True


async def user_of(arm: Arm, interface: Kept) -> Standing | None:
    """The VM that uses it."""
    id = text_at(interface.body, "properties", "virtualMachine", "id")
    found = await standing_at(arm, id) if id else None
    if found is None or found.kept is None:
        return None
    is_mutual = any(same_id(text_at(r, "id"), interface.id) for r in references(found.kept.body))
    return found if is_mutual else None


async def interfaces_for(arm: Arm, machine_id: str, machine: Json) -> list[Kept]:
    """Those that the VM names, if it may have them. Raises ArmError."""
    found: list[Kept] = []
    for reference in references(machine):
        id = text_at(reference, "id")
        kept = await arm.shelf.find(id) if id else None
        if kept is None or kept.type.lower() != INTERFACES:
            raise missing_reference(id or "(without id)")
        user = await user_of(arm, kept)
        if user is not None and user.kept is not None and not same_id(user.kept.id, machine_id):
            raise ArmError(
                409,
                "NicInUse",
                f"Network Interface {kept.id} is used by existing resource {user.kept.id}. "
                "Use another, or delete that resource first.",
            )
        found.append(kept)
    return found


async def attach(arm: Arm, interfaces: Sequence[Kept], machine_id: str, *, by: Actor) -> None:
    for each in interfaces:
        await _say(arm, each, machine_id, by)


async def _say(arm: Arm, interface: Kept, machine_id: str, by: Actor) -> None:
    known: Kept | None = interface
    while known is not None:
        properties = object_at(known.body, "properties")
        if same_id(text_at(properties, "virtualMachine", "id"), machine_id):
            return
        properties = {**properties, "virtualMachine": {"id": machine_id}}
        try:
            await arm.shelf.put(
                replace(known, body={**known.body, "properties": properties}), by=by
            )
        except RecordChanged:
            known = await arm.shelf.find(interface.id)
        else:
            return
