"""These handlers serve the rolling upgrades of a scale set.

They also serve its orchestration services and the sizes that it may have.
"""

from msgspec.structs import replace

from fairwarning.azure_api import lists
from fairwarning.azure_api.body_values import object_at, text_at
from fairwarning.azure_api.catalogue import SIZES
from fairwarning.azure_api.errors import ArmError, invalid_value, not_allowed
from fairwarning.azure_api.instance_views import set_view_json
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord, new_record
from fairwarning.azure_api.scale_sets.actions import accepted_reply
from fairwarning.azure_api.scale_sets.render import current_body, set_unique_id
from fairwarning.azure_api.scale_sets.state import TYPE, ScaleSetState, get_scale_set
from fairwarning.core.instants import format_rfc3339
from fairwarning.core.resources import CAPACITY_MAX
from fairwarning.operator_api import scale_sets

UPGRADES = f"{TYPE}/rollingUpgrades"
SERVICES = f"{TYPE}/orchestrationServices"
REPAIRS = "AutomaticRepairs"
_KEY = TYPE.lower()
_STATES = {"suspend": "Suspended", "resume": "Running"}
_POLICY = {
    "maxBatchInstancePercent": 20,
    "maxUnhealthyInstancePercent": 20,
    "maxUnhealthyUpgradedInstancePercent": 20,
    "pauseTimeBetweenBatches": "PT0S",
}
"""The policy of a rolling upgrade, with Azure's defaults."""


async def start_upgrade(arm: Arm, call: ArmCall) -> Reply:
    """Gives all instances the latest model at once, except those that are protected."""
    found = await get_scale_set(arm, call.path)
    done = await scale_sets.upgrade(arm.control, found.groups, None, by=call.by, why=call.why)
    now = format_rfc3339(arm.control.clock.now())
    policy = object_at(current_body(found), "properties", "upgradePolicy", "rollingUpgradePolicy")
    body = {
        "policy": _POLICY | policy,
        "runningStatus": {
            "code": "Completed",
            "startTime": now,
            "lastAction": "Start",
            "lastActionTime": now,
        },
        "progress": {
            "successfulInstanceCount": len(done),
            "failedInstanceCount": 0,
            "inProgressInstanceCount": 0,
            "pendingInstanceCount": 0,
        },
    }
    await _store(arm, call, found, UPGRADES, "latest", body)
    return await accepted_reply(arm, call, found, "osRollingUpgrade", ())


async def get_upgrade(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    record = await _find(arm, found, UPGRADES, "latest")
    if call.path.name.lower() != "latest" or record is None:
        raise ArmError(
            404,
            "NotFound",
            f"The scale set '{found.roster.resource}' has had no rolling upgrade yet; start one "
            "with osRollingUpgrade.",
        )
    body = {
        "name": "latest",
        "id": record.id,
        "type": UPGRADES,
        "location": found.roster.location,
        "properties": record.body["properties"],
    }
    return Reply(200, body)


async def cancel_upgrade(arm: Arm, call: ArmCall) -> Reply:
    """Refuses, because an upgrade is over as soon as it has begun."""
    await get_scale_set(arm, call.path)
    raise not_allowed("There is no ongoing Rolling Upgrade to cancel; it is over.")


async def list_sizes(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    rows = [
        {
            "resourceType": TYPE,
            "sku": {"name": size.name, "tier": "Standard"},
            "capacity": {
                "minimum": 0,
                "maximum": CAPACITY_MAX,
                "defaultCapacity": len(found.members),
                "scaleType": "Automatic",
            },
        }
        for size in SIZES
    ]
    return Reply(200, {"value": rows[: lists.page_items(call)]})


async def set_service_state(arm: Arm, call: ArmCall) -> Reply:
    """Stores the state of a service. It has no effect, because nothing here repairs instances."""
    found = await get_scale_set(arm, call.path)
    service = text_at(call.body or {}, "serviceName")
    action = text_at(call.body or {}, "action")
    if service.lower() != REPAIRS.lower():
        raise invalid_value("serviceName", service, f"use {REPAIRS}")
    if action.lower() not in _STATES:
        raise invalid_value("action", action, "use Suspend or Resume")
    body = {"serviceName": REPAIRS, "serviceState": _STATES[action.lower()]}
    await _store(arm, call, found, SERVICES, REPAIRS, body)
    return await accepted_reply(arm, call, found, "setOrchestrationServiceState", ())


async def get_instance_view(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    view = set_view_json(found.groups)
    service = await _find(arm, found, SERVICES, REPAIRS)
    if service is not None:
        view["orchestrationServices"] = [service.body["properties"]]
    return Reply(200, view)


async def _find(arm: Arm, found: ScaleSetState, type: str, name: str) -> ResourceRecord | None:
    """Returns the record of this set, and never that of a deleted set of the same name."""
    record = await arm.resources.find(_id(found, type, name))
    is_own = record is not None and record.body["set"] == set_unique_id(found)
    return record if is_own else None


async def _store(
    arm: Arm, call: ArmCall, found: ScaleSetState, type: str, name: str, body: Json
) -> None:
    id = _id(found, type, name)
    before = await arm.resources.find(id)
    record = before or new_record(arm.control.clock.now(), id=id, type=type, name=name, body={})
    stored = {"set": set_unique_id(found), "properties": body}
    await arm.resources.put(replace(record, body=stored), by=call.by)


def _id(found: ScaleSetState, type: str, name: str) -> str:
    return f"{found.id}/{type.rpartition('/')[2]}/{name}"


ROUTES: Routes = {
    ("GET", _KEY, "instanceview"): get_instance_view,
    ("GET", _KEY, "skus"): list_sizes,
    ("POST", _KEY, "osrollingupgrade"): start_upgrade,
    ("POST", _KEY, "extensionrollingupgrade"): start_upgrade,
    ("POST", _KEY, "setorchestrationservicestate"): set_service_state,
    ("GET", UPGRADES.lower(), ""): get_upgrade,
    ("POST", UPGRADES.lower(), ""): cancel_upgrade,
}
