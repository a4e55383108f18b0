"""Scale sets through the SDK: made, changed, scaled, seen from all sides."""

from typing import Any

from azure.mgmt.compute import models

from fairwarning.core.resources import DEFAULT_RESOURCE_GROUP
from tests.azure_api.sdk.bodies import (
    all_of,
    create_network,
    create_scale_set,
    in_network,
    patch,
    scale_set,
    terms,
)
from tests.azure_api.sdk.sdk_clients import GROUP, SdkClients


def test_a_uniform_set_has_numbered_instances(azure: SdkClients) -> None:
    made = create_scale_set(azure, capacity=3)
    assert made.provisioning_state == "Succeeded"
    assert made.sku is not None
    assert made.sku.capacity == 3
    listed = list(azure.compute.virtual_machine_scale_set_vms.list(GROUP, "web"))
    assert [(each.instance_id, each.name) for each in listed] == [
        ("0", "web_0"), ("1", "web_1"), ("2", "web_2")
    ]  # fmt: skip
    assert all(each.latest_model_applied for each in listed)
    assert list(azure.instances()) == ["web_0", "web_1", "web_2"]


def test_instances_of_a_flexible_set_are_machines_too(azure: SdkClients) -> None:
    made = create_scale_set(azure, mode="Flexible")
    names = [v.name for v in azure.compute.virtual_machine_scale_set_vms.list(GROUP, "web")]
    machines = list(azure.compute.virtual_machines.list(GROUP))
    assert len(names) == 2
    assert {each.name for each in machines} == set(names) == set(azure.instances())
    owners = [each.virtual_machine_scale_set for each in machines]
    assert {str(each and each.id).lower() for each in owners} == {str(made.id).lower()}


def test_a_model_object_says_the_same_as_a_dictionary(azure: SdkClients) -> None:
    notice = models.TerminateNotificationProfile(not_before_timeout="PT7M", enable=True)
    body = models.VirtualMachineScaleSet(
        location="westeurope",
        sku=models.Sku(name="Standard_D2s_v5", capacity=1),
        properties=models.VirtualMachineScaleSetProperties(
            orchestration_mode="Uniform",
            virtual_machine_profile=models.VirtualMachineScaleSetVMProfile(
                scheduled_events_profile=models.ScheduledEventsProfile(
                    terminate_notification_profile=notice
                )
            ),
        ),
    )
    sets = azure.compute.virtual_machine_scale_sets
    azure.finish(sets.begin_create_or_update(GROUP, "web", body))
    assert timeout_of(sets.get(GROUP, "web")) == "PT7M"


def timeout_of(found: models.VirtualMachineScaleSet) -> str | None:
    profile = found.virtual_machine_profile
    assert profile is not None
    events = profile.scheduled_events_profile
    notice = events.terminate_notification_profile if events else None
    return notice.not_before_timeout if notice and notice.enable else None


def test_a_patch_changes_what_it_says_and_nothing_else(azure: SdkClients) -> None:
    create_scale_set(azure)
    sets = azure.compute.virtual_machine_scale_sets
    body: Any = patch("PT10M")
    changed = azure.finish(sets.begin_update(GROUP, "web", body))
    assert timeout_of(changed) == "PT10M"
    assert changed.sku is not None
    assert changed.sku.capacity == 2
    assert changed.virtual_machine_profile is not None
    assert changed.virtual_machine_profile.storage_profile is not None
    assert changed.virtual_machine_profile.storage_profile.image_reference is not None


def test_a_new_model_reaches_instances_when_they_are_updated(azure: SdkClients) -> None:
    create_scale_set(azure)
    sets = azure.compute.virtual_machine_scale_sets
    machines = azure.compute.virtual_machine_scale_set_vms
    body: Any = patch("PT10M")
    azure.finish(sets.begin_update(GROUP, "web", body))
    assert [v.latest_model_applied for v in machines.list(GROUP, "web")] == [False, False]
    azure.finish(sets.begin_update_instances(GROUP, "web", all_of("0")))
    assert [v.latest_model_applied for v in machines.list(GROUP, "web")] == [True, False]
    azure.finish(sets.begin_update_instances(GROUP, "web", all_of("*")))
    assert [v.latest_model_applied for v in machines.list(GROUP, "web")] == [True, True]


def test_scaling_adds_and_removes_the_highest_numbers(azure: SdkClients) -> None:
    create_scale_set(azure)
    sets = azure.compute.virtual_machine_scale_sets
    for capacity, names in ((4, ["web_0", "web_1", "web_2", "web_3"]), (1, ["web_0"])):
        body: Any = {"sku": {"name": "Standard_D2s_v5", "capacity": capacity}}
        changed = azure.finish(sets.begin_update(GROUP, "web", body))
        assert changed.sku is not None
        assert changed.sku.capacity == capacity
        assert list(azure.instances()) == names


def test_its_private_addresses_are_known_to_the_endpoint(azure: SdkClients) -> None:
    create_network(azure)
    create_scale_set(azure, **in_network())
    found = [each["addresses"] for each in azure.instances().values()]
    assert found == [["10.7.1.4"], ["10.7.1.5"]]


def test_sets_are_listed_in_the_group_and_in_the_subscription(azure: SdkClients) -> None:
    create_scale_set(azure, "one", 1)
    create_scale_set(azure, "two", 1, **terms("PT5M"))
    sets = azure.compute.virtual_machine_scale_sets
    assert sorted(str(each.name) for each in sets.list(GROUP)) == ["one", "two"]
    assert sorted(str(each.name) for each in sets.list_all()) == ["one", "two"]


def test_an_instance_view_tells_power_and_domains(azure: SdkClients) -> None:
    create_scale_set(azure)
    view = azure.compute.virtual_machine_scale_set_vms.get_instance_view(GROUP, "web", "1")
    codes = {each.code for each in view.statuses or []}
    assert codes >= {"ProvisioningState/succeeded", "PowerState/running"}
    assert view.platform_update_domain is not None
    whole = azure.compute.virtual_machine_scale_sets.get_instance_view(GROUP, "web")
    assert whole.virtual_machine is not None
    counted = {each.code: each.count for each in whole.virtual_machine.statuses_summary or []}
    assert counted["ProvisioningState/succeeded"] == 2


def test_what_the_operator_declared_can_be_changed_and_deleted(azure: SdkClients) -> None:
    azure.declare({"scale_set": [{"name": "theirs", "capacity": 2}]})
    place = DEFAULT_RESOURCE_GROUP
    sets = azure.compute.virtual_machine_scale_sets
    body: Any = {"sku": {"capacity": 3}}
    changed = azure.finish(sets.begin_update(place, "theirs", body))
    assert changed.sku is not None
    assert changed.sku.capacity == 3
    assert len(azure.instances()) == 3
    azure.finish(sets.begin_delete(place, "theirs"))
    assert azure.instances() == {}


def test_putting_the_same_again_changes_nothing(azure: SdkClients) -> None:
    made = create_scale_set(azure, **terms("PT5M"))
    body: Any = scale_set(2, **terms("PT5M"))
    again = azure.finish(
        azure.compute.virtual_machine_scale_sets.begin_create_or_update(GROUP, "web", body)
    )
    assert (again.unique_id, again.sku) == (made.unique_id, made.sku)
    assert all(each["latestModelApplied"] for each in azure.instances().values())
