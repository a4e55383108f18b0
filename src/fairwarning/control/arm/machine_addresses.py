"""The addresses of a VM are those of its interfaces, as long as it has any."""

from collections.abc import Iterable

from msgspec.structs import replace

from fairwarning.control.arm.attachments import addresses_of, references
from fairwarning.control.arm.bodies import text_at
from fairwarning.control.arm.call import Arm, ArmCall
from fairwarning.control.arm.instance_changes import change_instance
from fairwarning.control.arm.kept_machines import Standing
from fairwarning.control.arm.shelf import Kept


def all_addresses(interfaces: Iterable[Kept]) -> tuple[str, ...]:
    return tuple(address for each in interfaces for address in addresses_of(each.body))


async def readdress(arm: Arm, call: ArmCall, user: Standing | None) -> None:
    """An interface changed: the instance is known by its new addresses from now on."""
    if user is None or user.kept is None:
        return
    ids = [text_at(each, "id") for each in references(user.kept.body)]
    interfaces = [found for id in ids if (found := await arm.shelf.find(id)) is not None]
    addresses = all_addresses(interfaces)
    await change_instance(
        arm,
        call,
        user.machine.scope.id,
        user.machine.instance.name,
        lambda instance: replace(instance, addresses=addresses),
    )
