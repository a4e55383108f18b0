"""Networks, interfaces and addresses, kept as their owners wrote them.

Nothing here moves a packet. Parts such as subnets live inside their resource, and can be
asked for and changed by themselves too.
"""

import re
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from msgspec.structs import replace

from fairwarning.azure_api.body_values import location_of, refuse_moved, said
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.lists import listed
from fairwarning.azure_api.merge_patch import merged
from fairwarning.azure_api.networks.attachments import INTERFACES, addresses_of, user_of
from fairwarning.azure_api.networks.interfaces import (
    Settled,
    give_back,
    refuse_used,
    settle,
    with_user,
)
from fairwarning.azure_api.networks.parts import (
    delete_part,
    list_parts,
    put_part,
    refuse_subnets_in_use,
    show_part,
)
from fairwarning.azure_api.networks.render import PART_LISTS, part_list, resource_json
from fairwarning.azure_api.networks.subnets import refuse_network
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.virtual_machines.addresses import readdress
from fairwarning.engine.protocols import RecordChanged

NETWORKS = "microsoft.network/virtualnetworks"
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
_LISTS = (
    "virtualNetworks", "networkInterfaces", "publicIPAddresses", "loadBalancers",
    "networkSecurityGroups", "routeTables", "natGateways", "applicationSecurityGroups",
    "publicIPPrefixes", "applicationGateways", "privateEndpoints", "bastionHosts",
)  # fmt: skip


async def put(arm: Arm, call: ArmCall) -> Reply:
    refuse_name(call.path)
    if _part(call.path):
        return await put_part(arm, call)
    while True:
        try:
            return await _put(arm, call)
        except RecordChanged:
            continue  # Somebody else was faster: merge with what he said.


async def _put(arm: Arm, call: ArmCall) -> Reply:
    before = await arm.shelf.find(call.path.id)
    if before is None and call.method == "PATCH":
        raise not_found(call.path.type, call.path.name, call.path.group)
    await _refuse_orphan(arm, call.path)
    known = {} if before is None else before.body
    body = _located(call, known, merged(known, said(call.body)))
    settled = await _checked(arm, call, known, body)
    kept = before or Kept(
        id=call.path.id,
        type=call.path.type,
        name=call.path.name,
        body={},
        created_ms=arm.control.clock.now(),
        unique_id=str(uuid.uuid4()),
    )
    try:
        kept = await arm.shelf.put(replace(kept, body=settled.body), by=call.by)
    except BaseException:
        await give_back(arm, settled.claimed, call.path.id, by=call.by)
        raise
    await give_back(arm, settled.freed, call.path.id, by=call.by)
    if settled.claimed or settled.freed:
        await readdress(arm, call, await user_of(arm, kept), settled.freed)
    return Reply(201 if before is None else 200, await _shown(arm, kept))


def _located(call: ArmCall, known: Json, body: Json) -> Json:
    """Only the resources at the top have a location of their own."""
    if len(call.path.types) > 1:
        return body
    location = location_of(body)
    if known.get("location"):
        refuse_moved(call.path.name, call.path.group, known["location"], location)
    return {**body, "location": location}


async def _checked(arm: Arm, call: ArmCall, before: Json, body: Json) -> Settled:
    if call.path.key == INTERFACES:
        return await settle(arm, call.path.id, body, before, by=call.by)
    if call.path.key == NETWORKS:
        refuse_network(call.path.name, body)
        await refuse_subnets_in_use(arm, call.path, before, body)
    return Settled(body, (), ())


async def _refuse_orphan(arm: Arm, path: ResourcePath) -> None:
    if len(path.types) > 1 and await arm.shelf.find(path.up().id) is None:
        raise ArmError(
            404,
            "ParentResourceNotFound",
            "Can not perform requested operation on nested resource. Parent resource "
            f"'{path.up().name}' not found.",
        )


async def show(arm: Arm, call: ArmCall) -> Reply:
    if _part(call.path):
        return await show_part(arm, call)
    kept = await arm.shelf.find(call.path.id)
    if kept is None:
        raise not_found(call.path.type, call.path.name, call.path.group)
    return Reply(200, await _shown(arm, kept))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    if _part(call.path):
        return await delete_part(arm, call)
    children = [each async for each in arm.shelf.below(call.path.id)]
    kept = await arm.shelf.find(call.path.id)
    if kept is None:
        # What a deletion that broke off has left.
        await _drop_all(arm, call, children)
        return Reply(204)
    if call.path.key == INTERFACES:
        refuse_used(kept, await user_of(arm, kept))
    if call.path.key == NETWORKS:
        await refuse_subnets_in_use(arm, call.path, kept.body, {})
    # First the resource itself: if somebody has changed it meanwhile, all stays.
    await arm.shelf.drop(kept, by=call.by)
    await _drop_all(arm, call, children)
    if call.path.key == INTERFACES:
        await give_back(arm, addresses_of(kept.body), kept.id, by=call.by)
    return Reply(200)


async def _drop_all(arm: Arm, call: ArmCall, children: Iterable[Kept]) -> None:
    for child in children:
        with suppress(RecordChanged):  # It belongs to a namesake that came meanwhile.
            await arm.shelf.drop(child, by=call.by)


async def list_all(arm: Arm, call: ArmCall) -> Reply:
    if part_list(call.path.type, call.path.tail):
        return await list_parts(arm, call)
    found = [await _shown(arm, each) async for each in _of_type(arm, call.path)]
    return await listed(call, found)


async def _of_type(arm: Arm, path: ResourcePath) -> AsyncIterator[Kept]:
    """At the level of the subscription, those of all its groups."""
    start = path.id if path.group else path.place
    wanted = f"{path.key}/{path.tail}"
    async for each in arm.shelf.below(start):
        if each.type.lower() == wanted:
            yield each


async def _shown(arm: Arm, kept: Kept) -> Json:
    shown = resource_json(kept)
    return await with_user(arm, kept, shown) if kept.type.lower() == INTERFACES else shown


def _part(path: ResourcePath) -> bool:
    return len(path.types) > 1 and part_list(path.up().type, path.types[-1]) is not None


def refuse_name(path: ResourcePath) -> None:
    if not _NAME.fullmatch(path.name):
        raise ArmError(
            400,
            "InvalidResourceName",
            f"Resource name {path.name[:100]} is invalid. The name can be up to 80 characters "
            "long. It must begin with a word character, and it must end with a word character or "
            "with '_'. The name may contain word characters or '.', '-', '_'.",
        )


_ANY = "microsoft.network/*"
ROUTES: Routes = {
    ("PUT", _ANY, ""): put,
    ("PATCH", _ANY, ""): put,
    ("GET", _ANY, ""): show,
    ("DELETE", _ANY, ""): delete,
    **{("GET", _ANY, word.lower()): list_all for word in (*_LISTS, *PART_LISTS)},
}
