"""What is done to instances through the SDK: the event that it is, and how long it lasts."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError

from tests.azure_api.sdk.bodies import create_scale_set, scale_set, terms, these
from tests.azure_api.sdk.sdk_clients import GROUP, SdkClients

SPOT: dict[str, Any] = {"priority": "Spot", "evictionPolicy": "Deallocate"}


def begin(azure: SdkClients, verb: str, *ids: str) -> Any:
    sets = azure.compute.virtual_machine_scale_sets
    return getattr(sets, f"begin_{verb}")(GROUP, "web", these(*ids))


def power(azure: SdkClients, instance: str = "0") -> set[str | None]:
    view = azure.compute.virtual_machine_scale_set_vms.get_instance_view(GROUP, "web", instance)
    codes = {each.code for each in view.statuses or []}
    return {code for code in codes if code and code.startswith("PowerState/")}


@pytest.mark.parametrize(("verb", "type"), [("restart", "Reboot"), ("redeploy", "Redeploy")])
def test_a_user_operation_is_an_event_that_waits_for_its_approval(
    azure: SdkClients, verb: str, type: str
) -> None:
    create_scale_set(azure)
    azure.document("web_0")
    working = begin(azure, verb, "1")
    (event,) = azure.document("web_0")
    assert (event["EventType"], event["EventSource"]) == (type, "User")
    assert (event["EventStatus"], event["Resources"]) == ("Scheduled", ["web_1"])
    assert verb in event["Description"].lower() or type.lower() in event["Description"].lower()
    assert not working.done()
    azure.approve("web_1", event["EventId"])
    azure.finish(working)
    assert azure.document("web_0") == []
    assert len(azure.instances()) == 2, "nothing but a delete removes an instance"


def test_without_ids_all_are_meant(azure: SdkClients) -> None:
    create_scale_set(azure)
    azure.finish(azure.compute.virtual_machine_scale_sets.begin_restart(GROUP, "web"))
    restarted = [each["resources"] for each in azure.events(type="Reboot")]
    assert sorted(restarted) == [["web_0"], ["web_1"]]


def test_one_instance_is_operated_by_itself(azure: SdkClients) -> None:
    create_scale_set(azure)
    machines = azure.compute.virtual_machine_scale_set_vms
    azure.finish(machines.begin_redeploy(GROUP, "web", "1"))
    azure.finish(machines.begin_restart(GROUP, "web", "0"))
    assert [(e["type"], e["resources"]) for e in azure.events(source="User")] == [
        ("Reboot", ["web_0"]), ("Redeploy", ["web_1"])
    ]  # fmt: skip


def test_reimaging_is_announced_only_if_the_model_says_so(azure: SdkClients) -> None:
    create_scale_set(azure, **terms("PT5M"))
    azure.document("web_0")
    azure.finish(begin(azure, "reimage", "0"))
    assert azure.document("web_0") == []
    profile = {"osImageNotificationProfile": {"notBeforeTimeout": "PT15M", "enable": True}}
    create_scale_set(azure, scheduledEventsProfile=profile)
    azure.finish(begin(azure, "reimage", "0"))
    working = begin(azure, "reimage", "0")
    (event,) = azure.document("web_0")
    assert (event["EventType"], event["EventStatus"]) == ("Reboot", "Scheduled")
    azure.finish(working)


def test_power_goes_off_and_on_without_an_event(azure: SdkClients) -> None:
    create_scale_set(azure, **terms("PT5M"))
    azure.document("web_0")
    states = {"deallocate": "deallocated", "start": "running", "power_off": "stopped"}
    for verb, state in states.items():
        azure.finish(begin(azure, verb, "0"))
        assert power(azure) == {f"PowerState/{state}"}
        assert azure.document("web_0") == []


def test_only_spot_instances_can_be_evicted(azure: SdkClients) -> None:
    create_scale_set(azure)
    machines = azure.compute.virtual_machine_scale_set_vms
    with pytest.raises(ResourceExistsError, match="only for Spot Virtual Machines") as refused:
        machines.simulate_eviction(GROUP, "web", "0")
    assert refused.value.error is not None
    assert refused.value.error.code == "OperationNotAllowed"


def test_an_eviction_is_a_preempt(azure: SdkClients) -> None:
    create_scale_set(azure, **SPOT)
    azure.document("web_0")
    azure.compute.virtual_machine_scale_set_vms.simulate_eviction(GROUP, "web", "0")
    (event,) = azure.document("web_0")
    assert (event["EventType"], event["Resources"]) == ("Preempt", ["web_0"])
    azure.time.advance("1m")
    azure.time.advance("1m")
    assert power(azure) == {"PowerState/deallocated"}


def test_a_policy_approves_in_advance(azure: SdkClients) -> None:
    body: Any = scale_set()
    body["properties"]["scheduledEventsPolicy"] = {
        "userInitiatedReboot": {"automaticallyApprove": True}
    }
    sets = azure.compute.virtual_machine_scale_sets
    azure.finish(sets.begin_create_or_update(GROUP, "web", body))
    azure.document("web_0")
    working = begin(azure, "restart", "1")
    (event,) = azure.document("web_0")
    assert event["EventStatus"] == "Started"
    azure.finish(working)
    found = sets.get(GROUP, "web").scheduled_events_policy
    assert found is not None
    assert found.user_initiated_reboot is not None
    assert found.user_initiated_reboot.automatically_approve is True


def test_maintenance_can_be_taken_early(azure: SdkClients) -> None:
    create_scale_set(azure)
    azure.document("web_0")
    body = {"type": "Reboot", "targets": ["web_1"]}
    azure.api.post("/events", json=body).raise_for_status()
    azure.finish(begin(azure, "perform_maintenance", "1"))
    (event,) = azure.events(type="Reboot")
    assert (event["phase"], event["startCause"]) == ("completed", "approved")


def test_too_many_pending_operations_are_refused(azure: SdkClients) -> None:
    create_scale_set(azure, capacity=11)
    azure.document("web_0")
    with pytest.raises(HttpResponseError) as refused:
        azure.compute.virtual_machine_scale_sets.begin_restart(GROUP, "web")
    assert refused.value.status_code in (409, 429)
    assert azure.events() == [], "all or none"
