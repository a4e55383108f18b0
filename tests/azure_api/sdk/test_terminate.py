"""Terminate through the SDK: only deletes raise it, and the delete waits for it."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.core.exceptions import ResourceNotFoundError as NotFound
from azure.core.polling import LROPoller
from azure.mgmt.maintenance.models import ScheduledEventsIdList

from tests.azure_api.sdk.bodies import all_of, create_scale_set, patch, terms
from tests.azure_api.sdk.sdk_clients import GROUP, SdkClients, minutes_between

SETS = "virtualMachineScaleSets"
NO_EVENT = "00000000-0000-4000-8000-000000000000"


def watched(azure: SdkClients, capacity: int = 3, **more: Any) -> None:
    create_scale_set(azure, "web", capacity, **{**terms("PT5M"), **more})
    azure.document("web_0")


def delete(azure: SdkClients, *ids: str) -> LROPoller[None]:
    sets = azure.compute.virtual_machine_scale_sets
    return sets.begin_delete_instances(GROUP, "web", all_of(*ids))


def test_a_delete_is_announced_and_waits_for_its_notice(azure: SdkClients) -> None:
    watched(azure)
    deleting = delete(azure, "1")
    (event,) = azure.document("web_0")
    assert (event["EventType"], event["Resources"]) == ("Terminate", ["web_1"])
    assert (event["EventStatus"], event["EventSource"]) == ("Scheduled", "User")
    assert azure.document("web_0", "2017-08-01") == [], "visible from 2019-01-01 only"
    azure.time.advance("4m")
    assert "web_1" in azure.instances()
    assert not deleting.done()
    azure.finish(deleting)
    assert list(azure.instances()) == ["web_0", "web_2"]
    assert azure.document("web_0") == []


def test_an_approval_through_maintenance_is_one_from_inside(azure: SdkClients) -> None:
    watched(azure)
    deleting = delete(azure, "1")
    (event,) = azure.document("web_0")
    said = azure.maintenance.scheduled_events.acknowledge(GROUP, SETS, "web", event["EventId"])
    assert said.value
    (seen,) = azure.events(type="Terminate")
    assert seen["startCause"] == "approved"
    assert [each["by"] for each in seen["approvals"]] == ["operator:sdk-operator"]
    azure.finish(deleting)
    assert list(azure.instances()) == ["web_0", "web_2"]


def test_of_two_pending_deletes_none_starts_before_both_are_approved(azure: SdkClients) -> None:
    watched(azure)
    deleting = delete(azure, "1", "2")
    one, other = (each["EventId"] for each in azure.document("web_0"))
    azure.approve("web_1", one)
    assert {each["EventStatus"] for each in azure.document("web_0")} == {"Scheduled"}
    approval = ScheduledEventsIdList(value=[one, other])
    azure.maintenance.scheduled_events.acknowledge_list(GROUP, SETS, "web", approval)
    assert {each["phase"] for each in azure.events(type="Terminate")} == {"started"}
    azure.finish(deleting)
    assert list(azure.instances()) == ["web_0"]


def test_an_unknown_event_cannot_be_acknowledged(azure: SdkClients) -> None:
    watched(azure)
    with pytest.raises(NotFound, match="InvalidScheduledEventId"):
        azure.maintenance.scheduled_events.acknowledge(GROUP, SETS, "web", NO_EVENT)


def test_an_event_of_another_resource_cannot_be_acknowledged_here(azure: SdkClients) -> None:
    watched(azure)
    create_scale_set(azure, "other", 1)
    deleting = delete(azure, "1")
    (event,) = azure.document("web_0")
    with pytest.raises(NotFound, match="InvalidScheduledEventId"):
        azure.maintenance.scheduled_events.acknowledge(GROUP, SETS, "other", event["EventId"])
    azure.finish(deleting)


def test_a_list_with_an_unknown_event_says_which(azure: SdkClients) -> None:
    watched(azure)
    deleting = delete(azure, "1")
    (event,) = azure.document("web_0")
    approval = ScheduledEventsIdList(value=[event["EventId"], NO_EVENT])
    with pytest.raises(HttpResponseError, match=NO_EVENT) as mixed:
        azure.maintenance.scheduled_events.acknowledge_list(GROUP, SETS, "web", approval)
    assert mixed.value.status_code == 207
    (seen,) = azure.events(type="Terminate")
    assert seen["phase"] == "started", "the known one is approved all the same"
    azure.finish(deleting)


def test_an_instance_keeps_the_timeout_of_its_own_model(azure: SdkClients) -> None:
    watched(azure)
    sets = azure.compute.virtual_machine_scale_sets
    body: Any = patch("PT15M")
    azure.finish(sets.begin_update(GROUP, "web", body))
    azure.finish(sets.begin_update_instances(GROUP, "web", all_of("2")))
    azure.document("web_0")
    before = azure.api.get("/clock").json()["now"]
    deleting = delete(azure, "2")
    (event,) = azure.events(type="Terminate", phase="scheduled")
    azure.finish(deleting)
    assert minutes_between(before, event["notBefore"]) == pytest.approx(15, abs=0.1)


def test_scaling_in_raises_it_too(azure: SdkClients) -> None:
    watched(azure)
    sets = azure.compute.virtual_machine_scale_sets
    body: Any = {"sku": {"name": "Standard_D2s_v5", "capacity": 1}}
    scaling = sets.begin_update(GROUP, "web", body)
    announced = [each["Resources"] for each in azure.document("web_0")]
    assert sorted(announced) == [["web_1"], ["web_2"]]
    assert len(azure.instances()) == 3
    azure.finish(scaling)
    assert list(azure.instances()) == ["web_0"]


def test_a_spot_instance_gets_none(azure: SdkClients) -> None:
    with pytest.raises(HttpResponseError) as refused:
        watched(azure, priority="Spot", evictionPolicy="Delete")
    assert refused.value.status_code == 400


def test_a_deleted_set_is_gone_when_its_last_instance_is(azure: SdkClients) -> None:
    watched(azure)
    sets = azure.compute.virtual_machine_scale_sets
    deleting = sets.begin_delete(GROUP, "web")
    assert len(azure.document("web_0")) == 3
    assert sets.get(GROUP, "web").provisioning_state == "Deleting"
    azure.finish(deleting)
    assert azure.instances() == {}
    with pytest.raises(NotFound):
        sets.get(GROUP, "web")
    azure.finish(sets.begin_delete(GROUP, "web"))
