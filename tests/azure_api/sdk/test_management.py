"""Protection, upgrades, tags and maintenance configurations, with the SDK."""

from typing import Any

from tests.azure_api.sdk.bodies import create_scale_set
from tests.azure_api.sdk.sdk_clients import GROUP, SdkClients

THIS = (GROUP, "Microsoft.Compute", "virtualMachineScaleSets", "web")


def test_a_protected_instance_stays_when_the_set_shrinks(azure: SdkClients) -> None:
    create_scale_set(azure, capacity=3)
    vms = azure.compute.virtual_machine_scale_set_vms
    policy = {"protectionPolicy": {"protectFromScaleIn": True}}
    body: Any = {"location": "westeurope", "properties": policy}
    shown = azure.finish(vms.begin_update(GROUP, "web", "2", body))
    assert shown.protection_policy is not None
    assert shown.protection_policy.protect_from_scale_in is True
    sets = azure.compute.virtual_machine_scale_sets
    smaller: Any = {"sku": {"capacity": 2}}
    azure.finish(sets.begin_update(GROUP, "web", smaller))
    assert [each.instance_id for each in vms.list(GROUP, "web")] == ["0", "2"]


def test_a_rolling_upgrade_and_the_sizes_of_a_set(azure: SdkClients) -> None:
    create_scale_set(azure)
    upgrades = azure.compute.virtual_machine_scale_set_rolling_upgrades
    azure.finish(upgrades.begin_start_os_upgrade(GROUP, "web"))
    latest = upgrades.get_latest(GROUP, "web")
    assert latest.running_status is not None
    assert latest.running_status.code == "Completed"
    sizes = azure.compute.virtual_machine_scale_sets.list_skus(GROUP, "web")
    assert any(each.sku is not None and each.sku.name == "Standard_D2s_v5" for each in sizes)


def test_tags_at_a_scope(azure: SdkClients) -> None:
    create_scale_set(azure)
    id = azure.compute.virtual_machine_scale_sets.get(GROUP, "web").id
    assert id is not None
    tags = azure.resources.tags
    azure.finish(
        tags.begin_create_or_update_at_scope(id, {"properties": {"tags": {"env": "test"}}})
    )
    patch = {"operation": "Merge", "properties": {"tags": {"team": "a"}}}
    azure.finish(tags.begin_update_at_scope(id, patch))
    assert tags.get_at_scope(id).properties.tags == {"env": "test", "team": "a"}


def test_maintenance_is_configured_assigned_and_applied(azure: SdkClients) -> None:
    create_scale_set(azure)
    maintenance = azure.maintenance
    configuration: Any = {
        "location": "westeurope",
        "properties": {"maintenanceScope": "Host"},
    }
    made = maintenance.maintenance_configurations.create_or_update(GROUP, "nightly", configuration)
    assert made.id is not None
    assignment: Any = {"properties": {"maintenanceConfigurationId": made.id}}
    maintenance.configuration_assignments.create_or_update(*THIS, "a", assignment)
    (found,) = maintenance.configuration_assignments.list(*THIS)
    assert found.properties is not None
    assert found.properties.maintenance_configuration_id == made.id
    azure.document("web_0")
    body = {"type": "Reboot", "targets": ["web_1"]}
    azure.api.post("/events", json=body).raise_for_status()
    (update,) = maintenance.updates.list(*THIS)
    assert (update.impact_type, update.status) == ("Restart", "Pending")
    applied = maintenance.apply_updates.create_or_update(*THIS)
    assert applied.properties is not None
    assert applied.properties.status == "InProgress"
    (event,) = azure.events(type="Reboot")
    assert event["startCause"] == "approved"
