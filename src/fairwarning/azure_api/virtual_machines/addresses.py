"""Computes the addresses of a VM: those the fleet declared, then those of its interfaces.

Declared addresses stay whatever az does to interfaces: the metadata endpoint identifies instances
by them.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from fairwarning.azure_api.body_values import text_at
from fairwarning.azure_api.instance_changes import change_instance
from fairwarning.azure_api.networks.attachments import addresses_of, references
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.virtual_machines.state import VirtualMachineState


def addresses_of_all(interfaces: Iterable[ResourceRecord]) -> tuple[str, ...]:
    return tuple(address for each in interfaces for address in addresses_of(each.body))


def replace_addresses(
    addresses: Iterable[str], had: Collection[str], has: Sequence[str]
) -> tuple[str, ...]:
    """Returns an instance's new addresses.

    `had` and `has` are those of its interfaces before and now.
    """
    declared = (each for each in addresses if each not in had and each not in has)
    return (*declared, *has)


async def interfaces_of(arm: Arm, vm: Json) -> list[ResourceRecord]:
    """Returns the existing interfaces that the body of a VM names."""
    ids = [text_at(each, "id") for each in references(vm)]
    return [found for id in ids if id and (found := await arm.resources.find(id)) is not None]


async def update_addresses(
    arm: Arm, call: ArmCall, user: VirtualMachineState | None, freed: Collection[str]
) -> None:
    """Gives an instance the new addresses of its interfaces. `freed` are those it lost."""
    if user is None or user.record is None:
        return
    has = addresses_of_all(await interfaces_of(arm, user.record.body))
    await change_instance(
        arm,
        call,
        user.vm.scope.id,
        user.vm.instance.name,
        lambda instance: replace(
            instance, addresses=replace_addresses(instance.addresses, freed, has)
        ),
    )
