"""These handlers create, get, list and delete parts of network resources, such as subnets."""

from msgspec.structs import replace

from fairwarning.azure_api.body_values import object_at, objects_at, resource_members, text_at
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.etags import refuse_unmatched_record
from fairwarning.azure_api.lists import list_reply
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.networks.attachments import INTERFACES
from fairwarning.azure_api.networks.render import part_json, part_list
from fairwarning.azure_api.networks.subnets import SUBNETS, refuse_network, subnets_of
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.engine.protocols import RecordChanged


async def create_or_update_part(arm: Arm, call: ArmCall) -> Reply:
    _refuse_by_itself(call)
    while True:
        parent = await _parent(arm, call)
        known = _find(parent, call.path)
        refuse_unmatched_record(call, None if known is None else parent)
        if known is None and call.method == "PATCH":
            raise not_found(call.path.type, call.path.name, call.path.group)
        part = {"name": call.path.name, **merge(known or {}, resource_members(call.body))}
        name = _list_name(call.path)
        others = [each for each in _parts(parent, name) if each is not known]
        body = _with_parts(parent, name, [*others, part])
        if call.path.key == SUBNETS:
            refuse_network(parent.name, body)
        try:
            parent = await arm.resources.put(replace(parent, body=body), by=call.by)
        except RecordChanged:
            continue
        return Reply(201 if known is None else 200, part_json(parent, name, part))


async def get_part(arm: Arm, call: ArmCall) -> Reply:
    parent = await _parent(arm, call)
    part = _find(parent, call.path)
    if part is None:
        raise not_found(call.path.type, call.path.name, call.path.group)
    return Reply(200, part_json(parent, _list_name(call.path), part))


async def delete_part(arm: Arm, call: ArmCall) -> Reply:
    _refuse_by_itself(call)
    while True:
        parent = await arm.resources.find(call.path.up().id)
        part = None if parent is None else _find(parent, call.path)
        refuse_unmatched_record(call, None if part is None else parent)
        if parent is None or part is None:
            return Reply(204)
        name = _list_name(call.path)
        rest = [each for each in _parts(parent, name) if each is not part]
        body = _with_parts(parent, name, rest)
        if call.path.key == SUBNETS:
            await refuse_subnets_in_use(arm, call.path.up(), parent.body, body)
        try:
            await arm.resources.put(replace(parent, body=body), by=call.by)
        except RecordChanged:
            continue
        return Reply(200)


async def list_parts(arm: Arm, call: ArmCall) -> Reply:
    parent = await arm.resources.find(call.path.id)
    if parent is None:
        raise not_found(call.path.type, call.path.name, call.path.group)
    name = part_list(call.path.type, call.path.tail) or call.path.tail
    found = [part_json(parent, name, each) for each in _parts(parent, name)]
    return await list_reply(call, found)


async def refuse_subnets_in_use(arm: Arm, network: ResourcePath, before: Json, body: Json) -> None:
    """Raises ArmError if the new body removes a subnet that an interface uses."""
    stay = {text_at(each, "name").lower() for each in subnets_of(body)}
    names = [text_at(each, "name") for each in subnets_of(before)]
    going = {f"{network.id}/subnets/{name}".lower() for name in names if name.lower() not in stay}
    if not going:
        return
    async for record in arm.resources.list_below(f"/subscriptions/{network.subscription}"):
        if record.type.lower() != INTERFACES:
            continue
        for each in objects_at(record.body, "properties", "ipConfigurations"):
            used = text_at(each, "properties", "subnet", "id")
            if f"/{used.strip('/')}".lower() in going:
                raise ArmError(
                    400,
                    "InUseSubnetCannotBeDeleted",
                    f"Subnet {used} is in use by {record.id}/ipConfigurations/{each.get('name')} "
                    "and cannot be deleted. In order to delete the subnet, delete all the "
                    "resources within the subnet.",
                )


def _refuse_by_itself(call: ArmCall) -> None:
    """Raises ArmError if the part is an IP configuration.

    As on Azure, a client must change the whole interface instead.
    """
    if call.path.up().key == INTERFACES:
        raise ArmError(
            405,
            "MethodNotAllowed",
            "An IP configuration is changed by a PUT of its network interface.",
            headers={"Allow": "GET"},
        )


async def _parent(arm: Arm, call: ArmCall) -> ResourceRecord:
    parent = await arm.resources.find(call.path.up().id)
    if parent is None:
        raise ArmError(
            404,
            "ParentResourceNotFound",
            "Can not perform requested operation on nested resource. Parent resource "
            f"'{call.path.up().name}' not found.",
        )
    return parent


def _list_name(path: ResourcePath) -> str:
    return part_list(path.up().type, path.types[-1]) or path.types[-1]


def _parts(parent: ResourceRecord, list_name: str) -> list[Json]:
    return objects_at(parent.body, "properties", list_name)


def _find(parent: ResourceRecord, path: ResourcePath) -> Json | None:
    wanted = path.name.lower()
    found = _parts(parent, _list_name(path))
    return next((each for each in found if text_at(each, "name").lower() == wanted), None)


def _with_parts(parent: ResourceRecord, list_name: str, parts: list[Json]) -> Json:
    properties = {**object_at(parent.body, "properties"), list_name: parts}
    return {**parent.body, "properties": properties}
