"""The addresses of a VM: those that the fleet declared, and then those of its interfaces.

What the fleet declared stays whatever az says of interfaces, because instances are known by it.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from fairwarning.azure_api.body_values import text_at
from fairwarning.azure_api.instance_changes import change_instance
from fairwarning.azure_api.networks.attachments import addresses_of, references
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.virtual_machines.state import Standing


def all_addresses(interfaces: Iterable[Kept]) -> tuple[str, ...]:
    return tuple(address for each in interfaces for address in addresses_of(each.body))


def exchanged(
    addresses: Iterable[str], had: Collection[str], has: Sequence[str]
) -> tuple[str, ...]:
    """An instance's addresses when its interfaces had those and have these."""
    declared = (each for each in addresses if each not in had and each not in has)
    return (*declared, *has)


async def interfaces_of(arm: Arm, machine: Json) -> list[Kept]:
    """Those that the body of a VM names, as far as they are there."""
    ids = [text_at(each, "id") for each in references(machine)]
    return [found for id in ids if id and (found := await arm.shelf.find(id)) is not None]


async def readdress(arm: Arm, call: ArmCall, user: Standing | None, freed: Collection[str]) -> None:
    """An interface changed: the instance is known by its new addresses from now on."""
    if user is None or user.kept is None:
        return
    has = all_addresses(await interfaces_of(arm, user.kept.body))
    await change_instance(
        arm,
        call,
        user.machine.scope.id,
        user.machine.instance.name,
        lambda instance: replace(instance, addresses=exchanged(instance.addresses, freed, has)),
    )
