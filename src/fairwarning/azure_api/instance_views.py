"""Renders instance views: power, provisioning state and pending maintenance. Pure."""

from collections import Counter
from collections.abc import Sequence

from fairwarning.azure_api.fleet_view import FleetInstance
from fairwarning.azure_api.request import Json
from fairwarning.core.identifiers import computer_name
from fairwarning.core.instants import SECOND_MS, Instant, format_rfc3339, later
from fairwarning.core.model import Event, EventType, Phase, Scope, Source
from fairwarning.core.pending_deletions import takes_away

_MAINTENANCE = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})


def view_json(vm: FleetInstance, now: Instant) -> Json:
    """Renders the `instanceView` of a VM or of an instance of a scale set."""
    instance = vm.instance
    view: Json = {
        "platformUpdateDomain": instance.update_domain,
        "platformFaultDomain": instance.fault_domain,
        "computerName": computer_name(vm.scope.roster, instance),
        "statuses": _statuses(vm),
    }
    maintenance = [each for each in pending_maintenance(vm) if each.not_before_ms > now]
    if maintenance:
        view["maintenanceRedeployStatus"] = _maintenance_json(maintenance[0])
    return view


def set_view_json(groups: Sequence[Scope]) -> Json:
    """Renders the `instanceView` of a scale set, with the number of instances in each state."""
    vms = [FleetInstance(scope, each) for scope in groups for each in scope.roster.live]
    counts = Counter(code for each in vms for code in status_codes(each))
    summary = [{"code": code, "count": count} for code, count in sorted(counts.items())]
    return {
        "virtualMachine": {"statusesSummary": summary},
        "statuses": [_status("ProvisioningState", "succeeded", "Provisioning succeeded")],
    }


def status_codes(vm: FleetInstance) -> list[str]:
    """Returns the status codes of an instance, such as `PowerState/running`."""
    return [str(each["code"]) for each in _statuses(vm)]


def provisioning_state(vm: FleetInstance) -> str:
    """Returns `Deleting`, `Updating` or `Succeeded`."""
    own = [each for each in events_of(vm) if each.operation is not None]
    if any(takes_away(each) for each in own):
        return "Deleting"
    return "Updating" if own else "Succeeded"


def pending_maintenance(vm: FleetInstance) -> list[Event]:
    """Returns the platform's scheduled maintenance events for this instance, earliest first."""
    found = [
        each
        for each in events_of(vm)
        if each.source is Source.PLATFORM
        and each.phase is Phase.SCHEDULED
        and each.type in _MAINTENANCE
    ]
    return sorted(found, key=lambda each: each.not_before_ms)


def events_of(vm: FleetInstance) -> list[Event]:
    """Returns the events of the instance that are not over."""
    name = vm.instance.name
    return [each for each in vm.scope.unfinished if name in each.resources]


def _statuses(vm: FleetInstance) -> list[Json]:
    state, power = provisioning_state(vm), vm.instance.power.value
    display = "Provisioning succeeded" if state == "Succeeded" else state
    return [
        _status("ProvisioningState", state.lower(), display),
        _status("PowerState", power, f"VM {power}"),
    ]


def _status(kind: str, word: str, display: str) -> Json:
    return {"code": f"{kind}/{word}", "level": "Info", "displayStatus": display}


def _maintenance_json(event: Event) -> Json:
    """Renders a maintenance event.

    The owner of the VM can start the maintenance until NotBefore. Then it starts by itself.
    """
    ends = later(event.not_before_ms, max(event.duration_s, 0) * SECOND_MS)
    return {
        "isCustomerInitiatedMaintenanceAllowed": True,
        "preMaintenanceWindowStartTime": format_rfc3339(event.created_ms),
        "preMaintenanceWindowEndTime": format_rfc3339(event.not_before_ms),
        "maintenanceWindowStartTime": format_rfc3339(event.not_before_ms),
        "maintenanceWindowEndTime": format_rfc3339(ends),
        "lastOperationResultCode": "None",
        "lastOperationMessage": event.description,
    }
