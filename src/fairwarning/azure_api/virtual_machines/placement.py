"""Adds a new VM to the fleet, alone, in an availability set or in a flexible scale set."""

from dataclasses import replace

from fairwarning.azure_api.availability_sets import TYPE as AVAILABILITY_SETS
from fairwarning.azure_api.availability_sets import find_availability_set
from fairwarning.azure_api.errors import ArmError, invalid_parameter, not_found
from fairwarning.azure_api.instance_changes import (
    add_instance,
    create_scope,
    place_of,
    refuse_others,
)
from fairwarning.azure_api.paths import ResourcePath, find_path
from fairwarning.azure_api.request import Arm, ArmCall
from fairwarning.azure_api.scale_sets import state
from fairwarning.azure_api.virtual_machines.body import WantedVm
from fairwarning.core.model import Instance, Policy, Roster
from fairwarning.core.resources import VirtualMachine, expand
from fairwarning.core.scale_sets import grow


async def add_vm(
    arm: Arm, call: ArmCall, wanted: WantedVm, instance: Instance, policy: Policy
) -> None:
    """Adds the VM to the set that it names, or alone if it names none.

    Raises ArmError or Refused.
    """
    if wanted.availability_set:
        await _add_to_availability_set(arm, call, wanted, instance)
    elif wanted.scale_set:
        await _add_to_scale_set(arm, call, wanted, instance)
    else:
        await _add_alone(arm, call, wanted, instance, policy)


async def _add_alone(
    arm: Arm, call: ArmCall, wanted: WantedVm, instance: Instance, policy: Policy
) -> None:
    vm = VirtualMachine(
        name=instance.name,
        addresses=instance.addresses,
        tags=instance.tags,
        priority=instance.priority,
        eviction=instance.eviction,
        policy=policy,
        place=place_of(call, wanted.location),
    )
    (scope,) = expand(vm)
    await create_scope(arm, call, scope)


async def _add_to_availability_set(
    arm: Arm, call: ArmCall, wanted: WantedVm, instance: Instance
) -> None:
    path = _set_path(call, wanted.availability_set, AVAILABILITY_SETS, "availabilitySet")
    found = await find_availability_set(arm, path.subscription, path.group, path.name)
    if found is None:
        raise not_found(AVAILABILITY_SETS, path.name, path.group)
    _refuse_elsewhere(wanted, found.scope.roster)
    await add_instance(arm, call, found.scope.id, instance)


async def _add_to_scale_set(arm: Arm, call: ArmCall, wanted: WantedVm, instance: Instance) -> None:
    path = _set_path(call, wanted.scale_set, state.TYPE, "virtualMachineScaleSet")
    found = await state.get_scale_set(arm, path)
    state.refuse_deleting(found)
    _refuse_elsewhere(wanted, found.roster)
    if found.roster.is_numbered:
        raise invalid_parameter(
            "virtualMachineScaleSet",
            f"The scale set '{path.name}' is uniform and makes its instances itself; raise its "
            "capacity, or use one whose orchestrationMode is Flexible.",
        )
    growth = grow(found.groups, [instance])
    for scope in growth.created:
        await refuse_others(arm, call, scope.id, scope.roster, [instance])
    for scope, _ in growth.added:
        await add_instance(arm, call, scope.id, instance)
    if growth.created:
        await arm.control.engine.create(growth.created, by=call.by, why=call.why)


def _set_path(call: ArmCall, id: str, type: str, property: str) -> ResourcePath:
    """Parses the id of the set that a body names.

    Raises ArmError if the id is not valid, or if the set is in another resource group than the VM.
    """
    path = find_path(id)
    if path is None or path.key != type.lower():
        raise _invalid(property, f"'{id[:200]}' is no id of a {type}")
    own = (call.path.subscription.lower(), call.path.group.lower())
    if (path.subscription.lower(), path.group.lower()) != own:
        raise _invalid(property, f"'{id[:200]}' is in another resource group than the VM")
    return replace(path, subscription=call.path.subscription, group=call.path.group)


def _refuse_elsewhere(wanted: WantedVm, roster: Roster) -> None:
    if wanted.location != roster.location:
        raise invalid_parameter(
            "location",
            f"The VM is to be in location '{wanted.location}' and its set '{roster.resource}' is "
            f"in '{roster.location}'; use the same.",
        )


def _invalid(property: str, why: str) -> ArmError:
    return invalid_parameter(property, f"The value of parameter '{property}' is invalid: {why}.")
