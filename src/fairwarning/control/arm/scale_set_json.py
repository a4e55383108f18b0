"""Scale sets, as ARM shows them. Pure.

What the fleet knows is shown as the fleet has it, whatever the owner said last.
"""

from fairwarning.control.arm.bodies import object_at, text_at
from fairwarning.control.arm.call import ArmCall, Json
from fairwarning.control.arm.kept_scale_sets import TYPE, Standing
from fairwarning.control.arm.profiles import Terms, policy_json, with_terms, without_too_new
from fairwarning.control.arm.scale_set_reading import MODES
from fairwarning.core.identifiers import guid_of, prefix_of
from fairwarning.core.instants import format_rfc3339
from fairwarning.core.model import Policy, Priority, Roster

_UNDER_WAY = {"create": "Creating", "update": "Updating", "delete": "Deleting"}
_SETS_OF_RULES = ("approve_user_reboot", "approve_user_redeploy", "approve_all_instances_down")


def set_json(found: Standing, call: ArmCall) -> Json:
    """As the api-version of the call may know it."""
    body = true_body(found)
    kept = found.kept
    properties = {
        **without_too_new(call, body["properties"]),
        "provisioningState": state_of_set(found),
        "uniqueId": kept.unique_id if kept else guid_of(found.id.lower()),
    }
    if kept is not None:
        properties["timeCreated"] = format_rfc3339(kept.created_ms)
    rest = {name: value for name, value in body.items() if name != "properties"}
    head = {"name": found.id.rpartition("/")[2], "id": found.id, "type": TYPE}
    return {**head, **rest, "properties": properties}


def state_of_set(found: Standing) -> str:
    verb = found.operation.verb if found.operation else ""
    if not found.state.is_over:
        return _UNDER_WAY.get(verb, "Updating")
    has_failed = found.state.status == "Failed" and verb in ("create", "delete")
    return "Failed" if has_failed else "Succeeded"


def true_body(found: Standing) -> Json:
    """What the owner said, with all that the fleet knows better; nothing that is read-only."""
    roster = found.roster
    body = _declared_body(found) if found.kept is None else found.kept.body
    properties = object_at(body, "properties")
    policy = object_at(properties, "upgradePolicy")
    mode = MODES.get(text_at(policy, "mode").lower(), "Manual")
    truth: Json = {
        **properties,
        "orchestrationMode": "Uniform" if roster.is_numbered else "Flexible",
        "upgradePolicy": {**policy, "mode": mode},
        "platformFaultDomainCount": roster.fault_domains,
        "virtualMachineProfile": _true_profile(roster, properties),
    }
    kept_policy = object_at(properties, "scheduledEventsPolicy")
    if kept_policy or _says_something(roster.policy):
        truth["scheduledEventsPolicy"] = {**kept_policy, **policy_json(roster.policy)}
    sku = {"tier": "Standard", **object_at(body, "sku"), "capacity": len(found.members)}
    return {"location": roster.location, "tags": {}, **body, "sku": sku, "properties": truth}


def _declared_body(found: Standing) -> Json:
    """Of a set that was not made in ARM: no more than its roster says."""
    profile: Json = {
        "osProfile": {"computerNamePrefix": prefix_of(found.roster)},
        "storageProfile": {"osDisk": {"createOption": "FromImage", "osType": "Linux"}},
        "networkProfile": {"networkInterfaceConfigurations": []},
    }
    some = next(iter(found.machines)).instance
    if some.priority is Priority.SPOT:
        profile |= {"priority": "Spot", "evictionPolicy": some.eviction.value}
    return {"tags": dict(some.tags), "properties": {"virtualMachineProfile": profile}}


def _true_profile(roster: Roster, properties: Json) -> Json:
    profile = object_at(properties, "virtualMachineProfile")
    kept = object_at(profile, "scheduledEventsProfile")
    model = roster.model
    told = with_terms(kept, Terms(model.terminate_notice_ms, model.reimage_notice_ms))
    rest = {name: value for name, value in profile.items() if name != "scheduledEventsProfile"}
    return {**rest, "scheduledEventsProfile": told} if told else rest


def _says_something(policy: Policy) -> bool:
    usual = Policy()
    return any(getattr(policy, each) != getattr(usual, each) for each in _SETS_OF_RULES)
