"""Virtual machines and availability sets through the SDK."""

from typing import Any

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.core.exceptions import ResourceNotFoundError as NotFound
from azure.mgmt.compute import models

from tests.azure_api.sdk.bodies import create_interface, create_network, create_vm
from tests.azure_api.sdk.sdk_clients import GROUP, LOCATION, SdkClients

SETS = "availabilitySets"


def make_set(azure: SdkClients, **properties: Any) -> str:
    """Its id."""
    body: Any = {
        "location": LOCATION,
        "sku": {"name": "Aligned"},
        "properties": {"platformUpdateDomainCount": 2, "platformFaultDomainCount": 2, **properties},
    }
    made = azure.compute.availability_sets.create_or_update(GROUP, "avset", body)
    assert made.id is not None
    return made.id


def in_set(azure: SdkClients, count: int = 2, **properties: Any) -> list[str]:
    id = make_set(azure, **properties)
    names = [f"vm-{number}" for number in range(count)]
    for name in names:
        create_vm(azure, name, availabilitySet={"id": id.upper()})
    return names


def test_a_machine_is_known_by_the_address_of_its_interface(azure: SdkClients) -> None:
    create_network(azure)
    made = create_vm(azure, "vm", interface=create_interface(azure, "nic"))
    assert made.provisioning_state == "Succeeded"
    assert azure.instances()["vm"]["addresses"] == ["10.7.1.4"]
    assert azure.document("vm") == []


def test_members_of_an_availability_set_are_spread_over_its_domains(azure: SdkClients) -> None:
    names = in_set(azure, 3)
    found = azure.instances()
    assert [found[name]["updateDomain"] for name in names] == [0, 1, 0]
    shown = azure.compute.availability_sets.get(GROUP, "avset")
    members = {str(each.id).rpartition("/")[2] for each in shown.virtual_machines or []}
    assert members == set(names)
    view = azure.compute.virtual_machines.instance_view(GROUP, "vm-1")
    assert view.platform_update_domain == 1


def test_a_set_without_members_can_be_deleted(azure: SdkClients) -> None:
    make_set(azure)
    azure.compute.availability_sets.delete(GROUP, "avset")
    azure.compute.availability_sets.delete(GROUP, "avset")
    assert list(azure.compute.availability_sets.list(GROUP)) == []


def test_a_restart_in_a_set_is_seen_by_its_neighbours(azure: SdkClients) -> None:
    in_set(azure)
    azure.document("vm-1")
    working = azure.compute.virtual_machines.begin_restart(GROUP, "vm-0")
    (event,) = azure.document("vm-1")
    assert (event["EventType"], event["Resources"]) == ("Reboot", ["vm-0"])
    acknowledge = azure.maintenance.scheduled_events.acknowledge
    acknowledge(GROUP, SETS, "avset", event["EventId"])
    azure.finish(working)


def test_the_policy_of_a_set_is_its_members(azure: SdkClients) -> None:
    in_set(azure, scheduledEventsPolicy={"userInitiatedRedeploy": {"automaticallyApprove": True}})
    azure.document("vm-1")
    working = azure.compute.virtual_machines.begin_redeploy(GROUP, "vm-0")
    (event,) = azure.document("vm-1")
    assert event["EventStatus"] == "Started"
    azure.finish(working)


def test_power_is_shown(azure: SdkClients) -> None:
    create_vm(azure, "vm")
    machines = azure.compute.virtual_machines
    for begin, state in (
        (machines.begin_deallocate, "PowerState/deallocated"),
        (machines.begin_start, "PowerState/running"),
        (machines.begin_power_off, "PowerState/stopped"),
    ):
        azure.finish(begin(GROUP, "vm"))
        shown = machines.get(GROUP, "vm", expand="instanceView").instance_view
        assert shown is not None
        assert state in {each.code for each in shown.statuses or []}


def test_only_a_spot_machine_can_be_evicted(azure: SdkClients) -> None:
    create_vm(azure, "vm")
    create_vm(azure, "spot", priority="Spot", evictionPolicy="Delete")
    machines = azure.compute.virtual_machines
    with pytest.raises(ResourceExistsError, match="only for Spot Virtual Machines"):
        machines.simulate_eviction(GROUP, "vm")
    azure.document("spot")
    machines.simulate_eviction(GROUP, "spot")
    (event,) = azure.document("spot")
    assert event["EventType"] == "Preempt"
    azure.time.advance("1m")
    azure.time.advance("1m")
    assert list(azure.instances()) == ["vm"]


def test_a_deleted_machine_is_gone_with_its_address(azure: SdkClients) -> None:
    create_network(azure)
    interface = create_interface(azure, "nic")
    create_vm(azure, "vm", interface=interface)
    machines = azure.compute.virtual_machines
    azure.finish(machines.begin_delete(GROUP, "vm"))
    assert azure.instances() == {}
    with pytest.raises(NotFound, match="ResourceNotFound"):
        machines.get(GROUP, "vm")
    azure.finish(machines.begin_delete(GROUP, "vm"))
    assert isinstance(create_vm(azure, "again", interface=interface), models.VirtualMachine)


def test_machines_are_listed_in_the_group_and_in_the_subscription(azure: SdkClients) -> None:
    in_set(azure)
    create_vm(azure, "alone")
    machines = azure.compute.virtual_machines
    assert sorted(str(v.name) for v in machines.list(GROUP)) == ["alone", "vm-0", "vm-1"]
    assert sorted(str(v.name) for v in machines.list_all()) == ["alone", "vm-0", "vm-1"]
