"""This module derives the GUIDs and computer names that Azure would invent from names."""

from hashlib import sha1

from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Roster, Scope, ScopeKind
from fairwarning.core.resources import flexible_hostname, uniform_hostname

_NAMESPACE = bytes.fromhex("6f1c9f3e52a44c3b9a8e0d8c1d2f7a10")


def guid_of(text: str, namespace: bytes = _NAMESPACE) -> str:
    """Return the version 5 UUID of the text, which is always the same for the same text. The module
    `uuid` is not used, because it has a random source, and the core must have none.
    """
    digest = sha1(namespace + text.encode(), usedforsecurity=False).digest()[:16]
    number = int.from_bytes(digest)
    number = number & ~(0xF << 76) | 5 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def vm_id(scope: Scope, instance: Instance) -> str:
    """Return the vmId of the instance, which never changes and is unique in the fleet."""
    return guid_of(f"{scope.id}/{instance.name}")


def placement_group_id(scope: Scope) -> str:
    return guid_of(scope.id)


def computer_name(roster: Roster, instance: Instance) -> str:
    """Return the computer name: a prefix and six characters in a scale set, elsewhere the name."""
    is_of_a_set = roster.kind is ScopeKind.SCALE_SET
    # A separate VM that joined a flexible set is not named after the set.
    if not is_of_a_set or not instance.name.startswith(f"{roster.resource}_"):
        return instance.name
    number = number_of(roster, instance.name)
    if number is None:
        return flexible_hostname(prefix_of(roster), instance.name)
    return uniform_hostname(prefix_of(roster), number)


def prefix_of(roster: Roster) -> str:
    return roster.computer_name_prefix or roster.resource
