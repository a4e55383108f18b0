"""Allocates private addresses. Each address is used at most once in the whole fleet.

The metadata endpoint identifies an instance by its source address, so an address must not be used
twice, not even in two networks. An address is taken if an instance has it or if it is claimed here.
A claim lasts as long as its owner, which is an interface. A claim without an owner protects the
address until an instance of the fleet has it. It expires after a short time.
"""

import ipaddress
from collections.abc import Awaitable, Iterator

import msgspec
from msgspec import Struct

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.networks.subnets import Prefix, prefix_of
from fairwarning.azure_api.paths import same_id
from fairwarning.azure_api.request import Arm
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor
from fairwarning.engine.protocols import Fence, FenceBroken, Record, RecordChanged

KIND = "arm-address"
PAGE = 500
RESERVED_FIRST = 4
"""The number of reserved addresses at the start of a subnet, as on Azure.

They are the address of the network, the router's address and two addresses for DNS.
"""
FRESH_MS = 60_000
"""A claim that is younger than this is always valid, because its owner may not be stored yet."""


class Claim(Struct, frozen=True, kw_only=True):
    owner: str
    """The id of the interface that has the address. It is empty if the claim has no owner."""
    at_ms: Instant


class AddressTaken(Exception):
    """Another interface or an instance already has the address."""


async def allocate(
    arm: Arm, subnet_id: str, count: int, *, by: Actor, owner: str = "", version: int = 4
) -> list[str]:
    """Claims `count` free addresses of the subnet and returns them. It takes the lowest ones.

    Raises ArmError if there are too few. `version` is the IP version.
    """
    if not count:
        return []
    prefix = await prefix_of(arm, subnet_id, version)
    claims = await _claims(arm)
    found: list[str] = []
    # Owners are rarely gone, so their existence is checked only if no other address is free.
    for checks_owners in (False, True):
        for address in usable(prefix):
            known = claims.get(address)
            if address in found or await _is_held(arm, known, checks_owner=checks_owners):
                continue
            if await _try_claim(arm, address, known, owner, by):
                found.append(address)
            if len(found) == count:
                return found
    for address in found:
        await release(arm, address, owner, by=by)
    raise ArmError(
        400,
        "SubnetIsFull",
        f"Subnet {subnet_id} with address prefix {prefix} does not have enough capacity for "
        f"{count} IP addresses.",
    )


async def reserve(arm: Arm, address: str, owner_id: str, *, by: Actor) -> None:
    """Claims this address for the owner until it is released. Raises AddressTaken."""
    record = await arm.control.store.record(KIND, address)
    claim = None if record is None else _read_claim(record)
    if claim is not None and claim.owner and same_id(claim.owner, owner_id):
        return
    is_held = await _is_held(arm, record, checks_owner=True)
    if is_held or not await _try_claim(arm, address, record, owner_id, by):
        raise AddressTaken(address)


async def release(arm: Arm, address: str, owner: str, *, by: Actor) -> None:
    """Releases the address. Does nothing if the claim has another owner."""
    record = await arm.control.store.record(KIND, address)
    if record is not None and same_id(_read_claim(record).owner, owner):
        await _unless_changed(
            arm.control.store.drop(KIND, address, by=by, fences=[Fence(record=record)]), record
        )


def usable(prefix: Prefix) -> Iterator[str]:
    make = ipaddress.IPv4Address if prefix.version == 4 else ipaddress.IPv6Address
    first, last = usable_range(prefix)
    return (str(make(number)) for number in range(first, last + 1))


def usable_range(prefix: Prefix) -> tuple[int, int]:
    """Returns the first and last usable address as numbers.

    If there is no usable address, the last number is below the first.
    """
    broadcast = 1 if prefix.version == 4 else 0
    first = int(prefix.network_address) + RESERVED_FIRST
    return first, int(prefix.broadcast_address) - broadcast


async def _claims(arm: Arm) -> dict[str, Record]:
    found: dict[str, Record] = {}
    after = ""
    while page := await arm.control.store.records(KIND, after=after, limit=PAGE):
        found |= {record.key: record for record in page}
        after = page[-1].key
    return found


async def _is_held(arm: Arm, record: Record | None, *, checks_owner: bool) -> bool:
    if record is None:
        return False
    claim = _read_claim(record)
    if arm.control.clock.now() - claim.at_ms < FRESH_MS:
        return True
    if not claim.owner or not checks_owner:
        return bool(claim.owner)
    return await arm.resources.find(claim.owner) is not None


async def _try_claim(arm: Arm, address: str, known: Record | None, owner: str, by: Actor) -> bool:
    """Tries to claim the address. Returns False if it is taken.

    The views know the addresses of the fleet, except those that another node has just allocated.
    Therefore the store is asked too, if several nodes share it.
    """
    if arm.control.views.by_address(address) is not None:
        return False
    claim = Claim(owner=owner, at_ms=arm.control.clock.now())
    body = msgspec.json.encode(claim).decode()
    expected = 0 if known is None else known.revision
    fences = [] if known is None else [Fence(record=known)]
    keeping = arm.control.store.keep(KIND, address, body, expected=expected, by=by, fences=fences)
    if not await _unless_changed(keeping, known):
        return False
    # A claim is released only after its instance is stored, so the store shows a used address.
    if arm.control.store.is_shared and await arm.control.store.locate(address) is not None:
        await release(arm, address, owner, by=by)
        return False
    return True


async def _unless_changed(write: Awaitable[object], known: Record | None) -> bool:
    """Waits for the write. Returns False if another request changed the record first."""
    try:
        await write
    except RecordChanged:
        return False
    except FenceBroken as broken:
        if broken.fence.record != known:
            raise
        return False
    return True


def _read_claim(record: Record) -> Claim:
    return msgspec.json.decode(record.body, type=Claim)
