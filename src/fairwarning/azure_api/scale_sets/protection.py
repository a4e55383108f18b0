"""This handler updates an instance of a scale set: its protection and its tags.

All other members are ignored, because clients send back the whole body that they have read.
"""

from msgspec.structs import replace

from fairwarning.azure_api.body_values import object_at, tags_of
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.etags import Watch, checked_change, refuse_unmatched
from fairwarning.azure_api.instance_changes import change_instance
from fairwarning.azure_api.operations import operation_reply
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply
from fairwarning.azure_api.scale_sets.render import (
    current_body,
    get_instance,
    instance_json,
    instance_tag,
)
from fairwarning.azure_api.scale_sets.state import get_scale_set
from fairwarning.core.model import Instance, Protection

_SINCE = {True: "2019-03-01", False: "2023-09-01"}
"""The first api-version that has protection, in uniform sets and in flexible ones."""
_KINDS = {
    "protectFromScaleIn": Protection.SCALE_IN,
    "protectFromScaleSetActions": Protection.SET_ACTIONS,
}


async def update(arm: Arm, call: ArmCall) -> Reply:
    return await checked_change(arm, call, lambda own, watch: _update(own, call, watch))


async def _update(arm: Arm, call: ArmCall, watch: Watch) -> Reply:
    found = await get_scale_set(arm, call.path)
    vm = get_instance(found, call.path)
    refuse_unmatched(call, instance_tag(found, vm))
    watch([vm.scope])
    body = call.body or {}
    properties = object_at(body, "properties")
    _refuse_old_version(call, properties, is_uniform=found.roster.is_numbered)
    policy = object_at(properties, "protectionPolicy")
    tags = tags_of(body) if "tags" in body else None

    def changed(instance: Instance) -> Instance:
        if tags is not None:
            instance = replace(instance, tags=tags)
        return replace(instance, protected_from=protected_by(policy, instance.protected_from))

    await change_instance(arm, call, vm.scope.id, vm.instance.name, changed)
    operation = await arm.operations.begin(call, verb="update", target=call.path.id)
    found = await get_scale_set(arm, call.path)
    shown = instance_json(found, get_instance(found, call.path), current_body(found))
    return operation_reply(call, operation, found.roster.location, 200, shown)


def protected_by(policy: Json, before: tuple[Protection, ...]) -> tuple[Protection, ...]:
    """Returns the protection that is on after the policy. What the policy omits is as before."""
    return tuple(kind for name, kind in _KINDS.items() if policy.get(name, kind in before))


def _refuse_old_version(call: ArmCall, properties: Json, *, is_uniform: bool) -> None:
    since = _SINCE[is_uniform]
    if properties.get("protectionPolicy") is not None and call.api_version[:10] < since:
        raise ArmError(
            400,
            "BadRequest",
            "Could not find member 'protectionPolicy' on object of type "
            f"'VirtualMachineScaleSetVMProperties'. Use api-version {since} or later.",
        )
