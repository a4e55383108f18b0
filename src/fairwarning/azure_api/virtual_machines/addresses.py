"""Computes the addresses of a VM. Declared addresses come first, then those of its interfaces.

Declared addresses stay even if a client changes the interfaces, because the metadata endpoint
identifies instances by them.
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
    """Returns the new addresses of an instance, whose present ones are `addresses`.

    `had` are the old addresses of its interfaces, and `has` are the new ones.
    """
    declared = (each for each in addresses if each not in had and each not in has)
    return (*declared, *has)


async def interfaces_of(arm: Arm, vm: Json) -> list[ResourceRecord]:
    """Returns the interfaces that the body of a VM names, as far as they exist."""
    ids = [text_at(each, "id") for each in references(vm)]
    return [found for id in ids if id and (found := await arm.resources.find(id)) is not None]


async def update_addresses(
    arm: Arm, call: ArmCall, user: VirtualMachineState | None, freed: Collection[str]
) -> None:
    """Updates the addresses of the VM `user` after its interfaces changed.

    `freed` are the addresses that the interfaces no longer have. Does nothing if `user` is None.
    """
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
