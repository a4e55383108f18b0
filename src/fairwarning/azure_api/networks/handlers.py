"""These handlers create, get, list, update and delete network resources.

The resources are only stored as their owners wrote them. There is no real network. Parts such as
subnets are stored inside their resource. The handlers of parts are in `parts.py`.
"""

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from msgspec.structs import replace

from fairwarning.azure_api.body_values import (
    location_of,
    objects_at,
    refuse_moved,
    resource_members,
    text_at,
)
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.etags import refuse_unmatched_record, retried
from fairwarning.azure_api.lists import list_reply
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.networks.attachments import (
    INTERFACES,
    addresses_of,
    update_addresses,
    vm_using,
)
from fairwarning.azure_api.networks.interfaces import (
    InterfaceUpdate,
    assign_addresses,
    refuse_attached,
    release_addresses,
    with_vm,
)
from fairwarning.azure_api.networks.parts import (
    create_or_update_part,
    delete_part,
    get_part,
    list_parts,
    refuse_subnets_in_use,
)
from fairwarning.azure_api.networks.render import (
    LOAD_BALANCERS,
    PART_LISTS,
    PUBLIC_ADDRESSES,
    part_list,
    resource_json,
)
from fairwarning.azure_api.networks.subnets import refuse_network
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord, new_record
from fairwarning.engine.protocols import RecordChanged

NETWORKS = "microsoft.network/virtualnetworks"
_ADDRESS_USERS = {
    "microsoft.network/networkinterfaces": "ipConfigurations",
    LOAD_BALANCERS: "frontendIPConfigurations",
}
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
_LISTS = (
    "virtualNetworks", "networkInterfaces", "publicIPAddresses", "loadBalancers",
    "networkSecurityGroups", "routeTables", "natGateways", "applicationSecurityGroups",
    "publicIPPrefixes", "applicationGateways", "privateEndpoints", "bastionHosts",
)  # fmt: skip


async def create_or_update(arm: Arm, call: ArmCall) -> Reply:
    refuse_name(call.path)
    if _is_part(call.path):
        return await create_or_update_part(arm, call)
    return await retried(_create_or_update)(arm, call)


async def _create_or_update(arm: Arm, call: ArmCall) -> Reply:
    before = await arm.resources.find(call.path.id)
    refuse_unmatched_record(call, before)
    if before is None and call.method == "PATCH":
        raise not_found(call.path.type, call.path.name, call.path.group)
    await _refuse_without_parent(arm, call.path)
    known = {} if before is None else before.body
    body = _with_location(call, known, merge(known, resource_members(call.body)))
    update = await _check(arm, call, known, body)
    record = before or new_record(
        arm.control.clock.now(),
        id=call.path.id,
        type=call.path.type,
        name=call.path.name,
        body={},
    )
    try:
        record = await arm.resources.put(replace(record, body=update.body), by=call.by)
    except BaseException:
        await release_addresses(arm, update.claimed, call.path.id, by=call.by)
        raise
    await release_addresses(arm, update.freed, call.path.id, by=call.by)
    if update.claimed or update.freed:
        await update_addresses(arm, call, await vm_using(arm, record), update.freed)
    return Reply(201 if before is None else 200, await _json(arm, call.path, record))


def _with_location(call: ArmCall, known: Json, body: Json) -> Json:
    """Returns the body with its location in the usual form.

    A resource inside another one has no location. Raises ArmError if the location is missing or
    differs from the stored one.
    """
    if len(call.path.types) > 1:
        return body
    location = location_of(body)
    if known.get("location"):
        refuse_moved(call.path.name, call.path.group, known["location"], location)
    return {**body, "location": location}


async def _check(arm: Arm, call: ArmCall, before: Json, body: Json) -> InterfaceUpdate:
    if call.path.key == INTERFACES:
        return await assign_addresses(arm, call.path.id, body, before, by=call.by)
    if call.path.key == NETWORKS:
        refuse_network(call.path.name, body)
        await refuse_subnets_in_use(arm, call.path, before, body)
    return InterfaceUpdate(body, (), ())


async def _refuse_without_parent(arm: Arm, path: ResourcePath) -> None:
    if len(path.types) > 1 and await arm.resources.find(path.up().id) is None:
        raise ArmError(
            404,
            "ParentResourceNotFound",
            "Can not perform requested operation on nested resource. Parent resource "
            f"'{path.up().name}' not found.",
        )


async def get(arm: Arm, call: ArmCall) -> Reply:
    if _is_part(call.path):
        return await get_part(arm, call)
    record = await arm.resources.find(call.path.id)
    if record is None:
        raise not_found(call.path.type, call.path.name, call.path.group)
    return Reply(200, await _json(arm, call.path, record))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    if _is_part(call.path):
        return await delete_part(arm, call)
    children = [each async for each in arm.resources.list_below(call.path.id)]
    record = await arm.resources.find(call.path.id)
    refuse_unmatched_record(call, record)
    if record is None:
        # An interrupted deletion may have left these.
        await _delete_all(arm, call, children)
        return Reply(204)
    if call.path.key == INTERFACES:
        refuse_attached(record, await vm_using(arm, record))
    if call.path.key == NETWORKS:
        await refuse_subnets_in_use(arm, call.path, record.body, {})
    # The resource itself is deleted first: if another request has changed it, nothing is deleted.
    await arm.resources.delete(record, by=call.by)
    await _delete_all(arm, call, children)
    if call.path.key == INTERFACES:
        await release_addresses(arm, addresses_of(record.body), record.id, by=call.by)
    return Reply(200)


async def _delete_all(arm: Arm, call: ArmCall, children: Iterable[ResourceRecord]) -> None:
    for child in children:
        with suppress(RecordChanged):  # It now belongs to a new resource of the same name.
            await arm.resources.delete(child, by=call.by)


async def list_resources(arm: Arm, call: ArmCall) -> Reply:
    if part_list(call.path.type, call.path.tail):
        return await list_parts(arm, call)
    records = [each async for each in _iterate(arm, call.path)]
    return await list_reply(call, await _all_json(arm, call.path, records))


async def _iterate(arm: Arm, path: ResourcePath) -> AsyncIterator[ResourceRecord]:
    """Yields the resources of the path's type.

    If the path has no group, the whole subscription is searched.
    """
    start = path.id if path.group else path.place
    wanted = f"{path.key}/{path.tail}"
    async for each in arm.resources.list_below(start):
        if each.type.lower() == wanted:
            yield each


async def _json(arm: Arm, path: ResourcePath, record: ResourceRecord) -> Json:
    return (await _all_json(arm, path, [record]))[0]


async def _all_json(arm: Arm, path: ResourcePath, records: list[ResourceRecord]) -> list[Json]:
    """Renders resources of one type."""
    type = records[0].type.lower() if records else ""
    rows = [resource_json(each) for each in records]
    if type == INTERFACES:
        return [await with_vm(arm, *each) for each in zip(records, rows, strict=True)]
    if type == PUBLIC_ADDRESSES:
        users = await users_of_public_addresses(arm, path.subscription)
        for row in rows:
            if user := users.get(row["id"].lower()):
                row["properties"]["ipConfiguration"] = {"id": user}
    return rows


def _is_part(path: ResourcePath) -> bool:
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


async def users_of_public_addresses(arm: Arm, subscription: str) -> dict[str, str]:
    """Returns the id of the IP configuration that uses each public address.

    The ids of the addresses are in lower case. Addresses that nothing uses are not in the result.
    """
    found: dict[str, str] = {}
    async for record in arm.resources.list_below(f"/subscriptions/{subscription}"):
        name = _ADDRESS_USERS.get(record.type.lower())
        for each in objects_at(record.body, "properties", name) if name else []:
            used = text_at(each, "properties", "publicIPAddress", "id")
            if used:
                own = f"{record.id}/{name}/{text_at(each, 'name')}"
                found.setdefault(f"/{used.strip('/')}".lower(), own)
    return found


_ANY = "microsoft.network/*"
ROUTES: Routes = {
    ("PUT", _ANY, ""): create_or_update,
    ("PATCH", _ANY, ""): create_or_update,
    ("GET", _ANY, ""): get,
    ("DELETE", _ANY, ""): delete,
    **{("GET", _ANY, word.lower()): list_resources for word in (*_LISTS, *PART_LISTS)},
}
