"""Private addresses: given out once across the whole fleet, whatever network they are in.

Who asks the metadata endpoint is known by the source address, so two networks with the same
prefix must not share one. An address is taken if an instance has it or somebody claims it
here. A claim lasts as long as its owner, an interface. One without an owner only bridges
the moment until the fleet has the address, and lapses soon after.
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
"""Azure keeps the network's own, its router's and two for name service."""
FRESH_MS = 60_000
"""Until then whoever claims an address has made what it is for."""


class Claim(Struct, frozen=True, kw_only=True):
    owner: str
    """The id of the resource that has it; empty while it is on its way into the fleet."""
    at_ms: Instant


class Taken(Exception):
    """Somebody has the address already."""


async def allocate(
    arm: Arm, subnet_id: str, count: int, *, by: Actor, owner: str = "", version: int = 4
) -> list[str]:
    """Free addresses of the subnet, lowest first, already claimed. Raises ArmError."""
    if not count:
        return []
    prefix = await prefix_of(arm, subnet_id, version)
    claims = await _claims(arm)
    found: list[str] = []
    # Owners are gone seldom, so they are only asked after when all else is taken.
    for is_sweeping in (False, True):
        for address in usable(prefix):
            known = claims.get(address)
            if address in found or await _is_held(arm, known, asks_owner=is_sweeping):
                continue
            if await _claimed(arm, address, known, owner, by):
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
    """Claims this very address until it is released. Raises Taken."""
    record = await arm.control.store.record(KIND, address)
    claim = None if record is None else _claim(record)
    if claim is not None and claim.owner and same_id(claim.owner, owner_id):
        return
    is_held = await _is_held(arm, record, asks_owner=True)
    if is_held or not await _claimed(arm, address, record, owner_id, by):
        raise Taken(address)


async def release(arm: Arm, address: str, owner: str, *, by: Actor) -> None:
    """Nothing happens if it has another owner by now, or none."""
    record = await arm.control.store.record(KIND, address)
    if record is not None and same_id(_claim(record).owner, owner):
        await _unless_changed(
            arm.control.store.drop(KIND, address, by=by, fences=[Fence(record=record)]), record
        )


def usable(prefix: Prefix) -> Iterator[str]:
    make = ipaddress.IPv4Address if prefix.version == 4 else ipaddress.IPv6Address
    first, last = usable_range(prefix)
    return (str(make(number)) for number in range(first, last + 1))


def usable_range(prefix: Prefix) -> tuple[int, int]:
    """The first and the last, as numbers; none if the last comes first."""
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


async def _is_held(arm: Arm, record: Record | None, *, asks_owner: bool) -> bool:
    if record is None:
        return False
    claim = _claim(record)
    if arm.control.clock.now() - claim.at_ms < FRESH_MS:
        return True
    if not claim.owner or not asks_owner:
        return bool(claim.owner)
    return await arm.shelf.find(claim.owner) is not None


async def _claimed(arm: Arm, address: str, known: Record | None, owner: str, by: Actor) -> bool:
    """Whether it is ours now. The fleet's own addresses are known without asking the store, but
    for those that another node has just given out."""
    if arm.control.views.by_address(address) is not None:
        return False
    claim = Claim(owner=owner, at_ms=arm.control.clock.now())
    body = msgspec.json.encode(claim).decode()
    expected = 0 if known is None else known.revision
    fences = [] if known is None else [Fence(record=known)]
    keeping = arm.control.store.keep(KIND, address, body, expected=expected, by=by, fences=fences)
    if not await _unless_changed(keeping, known):
        return False
    # Whoever gives an address to a machine claims it meanwhile, so now the store knows it.
    if arm.control.store.is_shared and await arm.control.store.locate(address) is not None:
        await release(arm, address, owner, by=by)
        return False
    return True


async def _unless_changed(write: Awaitable[object], known: Record | None) -> bool:
    """Whether it was done; it is not if somebody else was faster."""
    try:
        await write
    except RecordChanged:
        return False
    except FenceBroken as broken:
        if broken.fence.record != known:
            raise
        return False
    return True


def _claim(record: Record) -> Claim:
    return msgspec.json.decode(record.body, type=Claim)
