"""Creates and updates VMs. It changes the fleet first and stores the body after that."""

from msgspec.structs import replace

from fairwarning.azure_api.body_values import (
    location_of,
    object_at,
    refuse_moved,
    resource_members,
    tags_of,
)
from fairwarning.azure_api.fleet_view import FleetInstance
from fairwarning.azure_api.instance_changes import change_instance
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.networks.attachments import (
    addresses_of_all,
    attach,
    attachable_interfaces,
    interfaces_of,
    replace_addresses,
)
from fairwarning.azure_api.notice_profiles import read_policy, read_terms
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply
from fairwarning.azure_api.resource_store import ResourceRecord, new_record
from fairwarning.azure_api.virtual_machines.body import (
    read_wanted,
    refuse_changed,
    refuse_changed_word,
    refuse_own_policy,
    refuse_without_size,
    without_secrets,
)
from fairwarning.azure_api.virtual_machines.placement import add_vm
from fairwarning.azure_api.virtual_machines.render import (
    declared_body,
    membership_json,
    written_reply,
)
from fairwarning.azure_api.virtual_machines.state import (
    TYPE,
    VirtualMachineState,
    refuse_deleting,
    vm_resource_id,
)
from fairwarning.core.commands import ChangePolicy
from fairwarning.core.model import Instance, InstanceName, Policy, ScopeKind
from fairwarning.core.roster import refuse_name


async def update(arm: Arm, call: ArmCall, found: VirtualMachineState) -> Reply:
    """Changes the members that the body has, and keeps all others.

    Raises RecordChanged if another request changed the VM meanwhile. The caller must then call it
    again with the new state.
    """
    refuse_deleting(call, found)
    requested = resource_members(call.body)
    _refuse_fixed(call, found.vm, requested)
    before = found.record or first_record(arm, found.vm)
    body = without_secrets(merge(before.body, requested))
    wanted = read_wanted(body)
    read_terms(object_at(body, "properties"))
    interfaces = await attachable_interfaces(arm, before.id, body)
    tags = wanted.tags if requested.get("tags") is not None else None
    had = addresses_of_all(await interfaces_of(arm, before.body))
    await _change_instance(arm, call, found.vm, tags, had, addresses_of_all(interfaces))
    await _change_policy(arm, call, found.vm, object_at(requested, "properties"))
    operation = await arm.operations.begin(call, verb="update", target=before.id)
    record = replace(before, body=body, operation=operation.id)
    await arm.resources.put(record, by=call.by)
    await attach(arm, interfaces, before.id, by=call.by)
    return await written_reply(arm, call, 200, operation)


def first_record(arm: Arm, vm: FleetInstance) -> ResourceRecord:
    """Returns a new record for a VM that was not created through ARM.

    It is needed for the first change through ARM.
    """
    return new_record(
        arm.control.clock.now(),
        id=vm_resource_id(vm),
        type=TYPE,
        name=vm.instance.name,
        body=declared_body(vm),
    )


def _refuse_fixed(call: ArmCall, vm: FleetInstance, requested: Json) -> None:
    """Raises ArmError if a property would change that is fixed after the creation."""
    properties = object_at(requested, "properties")
    roster = vm.scope.roster
    if requested.get("location") is not None:
        refuse_moved(call.path.name, call.path.group, roster.location, location_of(requested))
    if requested.get("tags") is not None:
        tags_of(requested)
    membership = membership_json(vm)
    for name in ("availabilitySet", "virtualMachineScaleSet"):
        refuse_changed(properties, name, membership.get(name, {}).get("id", ""))
    refuse_changed_word(properties, "priority", vm.instance.priority.value)
    refuse_changed_word(properties, "evictionPolicy", vm.instance.eviction.value)
    if roster.kind is not ScopeKind.VM:
        refuse_own_policy(properties, f"{roster.kind} '{roster.resource}'")


async def _change_instance(
    arm: Arm,
    call: ArmCall,
    vm: FleetInstance,
    tags: dict[str, str] | None,
    had: tuple[str, ...],
    has: tuple[str, ...],
) -> None:
    """Changes the tags and addresses of the VM. If `tags` is None, the tags stay.

    `had` and `has` are the addresses of its interfaces before and after the change.
    """

    def changed(instance: Instance) -> Instance:
        return replace(
            instance,
            tags=instance.tags if tags is None else tags,
            addresses=replace_addresses(instance.addresses, had, has),
        )

    if changed(vm.instance) != vm.instance:
        await change_instance(arm, call, vm.scope.id, vm.instance.name, changed)


async def _change_policy(arm: Arm, call: ArmCall, vm: FleetInstance, requested: Json) -> None:
    before = vm.scope.roster.policy
    policy = read_policy(requested, before)
    if policy != before:
        command = ChangePolicy(policy=policy)
        await arm.control.engine.submit(vm.scope.id, command, by=call.by, why=call.why)


async def create(arm: Arm, call: ArmCall) -> Reply:
    """Creates a VM. If it raises ArmError or Refused, no VM was created."""
    refuse_name(call.path.name)
    body = without_secrets(merge({}, resource_members(call.body)))
    properties = object_at(body, "properties")
    wanted = read_wanted(body)
    refuse_without_size(properties)
    read_terms(properties)
    if wanted.availability_set or wanted.scale_set:
        refuse_own_policy(properties, "an availability set or a scale set")
    interfaces = await attachable_interfaces(arm, call.path.id, body)
    instance = Instance(
        name=InstanceName(call.path.name),
        addresses=addresses_of_all(interfaces),
        tags=wanted.tags,
        priority=wanted.priority,
        eviction=wanted.eviction,
    )
    await add_vm(arm, call, wanted, instance, read_policy(properties, Policy()))
    operation = await arm.operations.begin(call, verb="create", target=call.path.id)
    record = new_record(
        arm.control.clock.now(),
        id=call.path.id,
        type=TYPE,
        name=instance.name,
        body=body,
        operation=operation.id,
    )
    await arm.resources.delete_below(call.path.id, by=call.by)
    await arm.resources.put(record, by=call.by)
    await attach(arm, interfaces, call.path.id, by=call.by)
    return await written_reply(arm, call, 201, operation)
