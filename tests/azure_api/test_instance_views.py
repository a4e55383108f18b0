"""How an instance is doing, from its scope alone."""

from msgspec.structs import replace

from fairwarning.azure_api.fleet_view import FleetInstance
from fairwarning.azure_api.instance_views import (
    provisioning_state,
    set_view_json,
    view_json,
)
from fairwarning.core.instants import MINUTE_MS, Instant
from fairwarning.core.model import (
    Event,
    EventId,
    EventType,
    InstanceName,
    OperationKind,
    Phase,
    Power,
    Scope,
    Source,
)
from fairwarning.core.resources import ScaleSet, VirtualMachine, expand

NOW = Instant(1_800_000_000_000)


def _set(*events: Event) -> Scope:
    (scope,) = expand(ScaleSet(name="s", capacity=3))
    return replace(scope, events={each.id: each for each in events})


def _machine(scope: Scope, name: str = "s_1") -> FleetInstance:
    return FleetInstance(scope, scope.roster.instances[InstanceName(name)])


def _event(
    number: int = 0,
    *,
    type: EventType = EventType.REBOOT,
    operation: OperationKind | None = None,
    phase: Phase = Phase.SCHEDULED,
    minutes: int = 15,
) -> Event:
    return Event(
        id=EventId(f"00000000-0000-0000-0000-{number:012}"),
        type=type,
        source=Source.USER if operation else Source.PLATFORM,
        phase=phase,
        resources=(InstanceName("s_1"),),
        update_domain=1,
        created_ms=NOW,
        not_before_ms=Instant(NOW + minutes * MINUTE_MS),
        duration_s=60,
        operation=operation,
    )


def _codes(machine: FleetInstance) -> list[str]:
    return [each["code"] for each in view_json(machine, NOW)["statuses"]]


def test_a_quiet_instance() -> None:
    view = view_json(_machine(_set()), NOW)
    assert view == {
        "platformUpdateDomain": 1,
        "platformFaultDomain": 1,
        "computerName": "s000001",
        "statuses": [
            {
                "code": "ProvisioningState/succeeded",
                "level": "Info",
                "displayStatus": "Provisioning succeeded",
            },
            {"code": "PowerState/running", "level": "Info", "displayStatus": "VM running"},
        ],
    }


def test_a_vm_of_its_own_is_called_by_its_name() -> None:
    (scope,) = expand(VirtualMachine(name="db"))
    assert view_json(_machine(scope, "db"), NOW)["computerName"] == "db"


def test_what_its_owner_asked_shows_until_it_is_over() -> None:
    restart = _event(operation=OperationKind.RESTART, phase=Phase.STARTED)
    delete = _event(1, type=EventType.TERMINATE, operation=OperationKind.DELETE)
    assert _codes(_machine(_set(restart)))[0] == "ProvisioningState/updating"
    assert _codes(_machine(_set(restart, delete)))[0] == "ProvisioningState/deleting"
    assert _codes(_machine(_set(restart, delete), "s_0"))[0] == "ProvisioningState/succeeded"
    over = replace(restart, phase=Phase.COMPLETED, ended_ms=NOW)
    assert provisioning_state(_machine(_set(over))) == "Succeeded"


def test_pending_maintenance_says_until_when_it_can_be_had_at_once() -> None:
    later, sooner = _event(0, minutes=30), _event(1, type=EventType.REDEPLOY, minutes=20)
    status = view_json(_machine(_set(later, sooner)), NOW)["maintenanceRedeployStatus"]
    assert status["isCustomerInitiatedMaintenanceAllowed"] is True
    assert status["preMaintenanceWindowStartTime"] == "2027-01-15T08:00:00.000Z"
    assert status["preMaintenanceWindowEndTime"] == "2027-01-15T08:20:00.000Z"
    assert status["maintenanceWindowStartTime"] == "2027-01-15T08:20:00.000Z"
    assert status["maintenanceWindowEndTime"] == "2027-01-15T08:21:00.000Z"


def test_only_maintenance_that_waits_is_maintenance() -> None:
    for event in (
        _event(operation=OperationKind.RESTART),
        _event(type=EventType.PREEMPT),
        _event(phase=Phase.STARTED),
        _event(minutes=0),
    ):
        assert "maintenanceRedeployStatus" not in view_json(_machine(_set(event)), NOW)


def test_a_set_counts_who_lives() -> None:
    scope = _set()
    instances = dict(scope.roster.instances)
    zero, one = InstanceName("s_0"), InstanceName("s_1")
    instances[zero] = replace(instances[zero], deleted_ms=NOW)
    instances[one] = replace(instances[one], power=Power.DEALLOCATED)
    scope = replace(scope, roster=replace(scope.roster, instances=instances))
    assert set_view_json([scope])["virtualMachine"]["statusesSummary"] == [
        {"code": "PowerState/deallocated", "count": 1},
        {"code": "PowerState/running", "count": 1},
        {"code": "ProvisioningState/succeeded", "count": 2},
    ]
