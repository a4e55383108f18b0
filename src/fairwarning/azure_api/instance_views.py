"""How an instance is doing, in ARM's words. Pure."""

from collections import Counter
from collections.abc import Sequence

from fairwarning.azure_api.fleet_view import Machine
from fairwarning.azure_api.request import Json
from fairwarning.core.deleting import takes_away
from fairwarning.core.identifiers import computer_name
from fairwarning.core.instants import SECOND_MS, Instant, format_rfc3339, later
from fairwarning.core.model import Event, EventType, Phase, Scope, Source

_MAINTENANCE = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})


def view_json(machine: Machine, now: Instant) -> Json:
    """An `instanceView`, of a VM or of an instance of a scale set."""
    instance = machine.instance
    view: Json = {
        "platformUpdateDomain": instance.update_domain,
        "platformFaultDomain": instance.fault_domain,
        "computerName": computer_name(machine.scope.roster, instance),
        "statuses": _statuses(machine),
    }
    maintenance = [each for each in pending_maintenance(machine) if each.not_before_ms > now]
    if maintenance:
        view["maintenanceRedeployStatus"] = _maintenance_json(maintenance[0])
    return view


def set_view_json(groups: Sequence[Scope]) -> Json:
    """Of a whole scale set: how many instances are how."""
    machines = [Machine(scope, each) for scope in groups for each in scope.roster.live]
    counts = Counter(code for each in machines for code in status_codes(each))
    summary = [{"code": code, "count": count} for code, count in sorted(counts.items())]
    return {
        "virtualMachine": {"statusesSummary": summary},
        "statuses": [_status("ProvisioningState", "succeeded", "Provisioning succeeded")],
    }


def status_codes(machine: Machine) -> list[str]:
    """`ProvisioningState/succeeded` and `PowerState/running`, say."""
    return [str(each["code"]) for each in _statuses(machine)]


def provisioning_state(machine: Machine) -> str:
    """`Deleting`, `Updating` or `Succeeded`."""
    own = [each for each in events_of(machine) if each.operation is not None]
    if any(takes_away(each) for each in own):
        return "Deleting"
    return "Updating" if own else "Succeeded"


def pending_maintenance(machine: Machine) -> list[Event]:
    """The platform's own events that wait for this instance, the next first."""
    found = [
        each
        for each in events_of(machine)
        if each.source is Source.PLATFORM
        and each.phase is Phase.SCHEDULED
        and each.type in _MAINTENANCE
    ]
    return sorted(found, key=lambda each: each.not_before_ms)


def events_of(machine: Machine) -> list[Event]:
    """All that are not over."""
    name = machine.instance.name
    return [each for each in machine.scope.unfinished if name in each.resources]


def _statuses(machine: Machine) -> list[Json]:
    state, power = provisioning_state(machine), machine.instance.power.value
    display = "Provisioning succeeded" if state == "Succeeded" else state
    return [
        _status("ProvisioningState", state.lower(), display),
        _status("PowerState", power, f"VM {power}"),
    ]


def _status(kind: str, word: str, display: str) -> Json:
    return {"code": f"{kind}/{word}", "level": "Info", "displayStatus": display}


def _maintenance_json(event: Event) -> Json:
    """Until NotBefore the owner may have it at once; then it happens."""
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
