"""What the SDK raises for input that makes no sense, and that nothing is left behind."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from tests.azure_api.sdk.bodies import create_scale_set, patch, scale_set, terms, vm_body
from tests.azure_api.sdk.sdk_clients import GROUP, SdkClients


def refusal(azure: SdkClients, body: Any, name: str = "web", **more: Any) -> tuple[int, str, str]:
    """Status, code and words of the answer to a PUT."""
    sets = azure.compute.virtual_machine_scale_sets
    with pytest.raises(HttpResponseError) as refused:
        sets.begin_create_or_update(GROUP, name, body, **more)
    assert refused.value.error is not None
    assert refused.value.status_code is not None
    assert azure.instances() == {}
    return refused.value.status_code, str(refused.value.error.code), refused.value.message


def test_a_timeout_outside_five_to_fifteen_minutes_is_refused(azure: SdkClients) -> None:
    for timeout in ("PT4M", "PT16M", "10", "soon"):
        status, code, message = refusal(azure, scale_set(**terms(timeout)))
        assert (status, code) == (400, "InvalidParameter")
        assert "notBeforeTimeout" in message


def test_a_patch_with_a_timeout_out_of_range_changes_nothing(azure: SdkClients) -> None:
    create_scale_set(azure, **terms("PT5M"))
    body: Any = patch("PT30M")
    with pytest.raises(HttpResponseError, match="notBeforeTimeout"):
        azure.compute.virtual_machine_scale_sets.begin_update(GROUP, "web", body)
    assert all(each["latestModelApplied"] for each in azure.instances().values())


def test_an_older_api_version_does_not_know_the_profile(azure: SdkClients) -> None:
    old = {"api-version": "2018-10-01"}
    status, code, message = refusal(azure, scale_set(**terms("PT5M")), params=old)
    assert (status, code) == (400, "BadRequest")
    expected = "Could not find member 'scheduledEventsProfile' on object of type "
    assert f"{expected}'VirtualMachineProfile'" in message


def test_a_missing_location_is_named(azure: SdkClients) -> None:
    body = scale_set()
    del body["location"]
    status, code, _ = refusal(azure, body)
    assert (status, code) == (400, "LocationRequired")


def test_a_name_that_is_too_long_is_refused(azure: SdkClients) -> None:
    status, code, _ = refusal(azure, scale_set(), name="w" * 65)
    assert (status, code) == (400, "InvalidResourceName")


def test_a_patch_of_the_wrong_type_is_refused_and_changes_nothing(azure: SdkClients) -> None:
    create_scale_set(azure)
    bodies: list[Any] = [
        {"sku": {"capacity": "many"}},
        {"sku": {"capacity": -1}},
        {"sku": []},
        {"properties": {"virtualMachineProfile": "none"}},
        {"properties": {"upgradePolicy": {"mode": 7}}},
    ]
    for body in bodies:
        with pytest.raises(HttpResponseError) as refused:
            azure.compute.virtual_machine_scale_sets.begin_update(GROUP, "web", body)
        assert refused.value.status_code == 400, body
        assert list(azure.instances()) == ["web_0", "web_1"]


def test_a_machine_in_a_set_that_is_not_there_is_refused(azure: SdkClients) -> None:
    body: Any = vm_body(availabilitySet={"id": f"/subscriptions/{azure.subscription}/nowhere"})
    with pytest.raises(HttpResponseError) as refused:
        azure.compute.virtual_machines.begin_create_or_update(GROUP, "vm", body)
    assert refused.value.status_code in (400, 404)
    assert azure.instances() == {}


def test_a_template_function_that_nobody_knows_fails_the_deployment(azure: SdkClients) -> None:
    template = {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "resources": [],
        "outputs": {"x": {"type": "string", "value": "[conjure('x')]"}},
    }
    group = f"/subscriptions/{azure.subscription}/resourceGroups/{GROUP}"
    deployment = f"{group}/providers/Microsoft.Resources/deployments/d"
    body: Any = {"properties": {"mode": "Incremental", "template": template}}
    resources = azure.resources.resources
    with pytest.raises(HttpResponseError, match="conjure"):
        azure.finish(
            resources.begin_create_or_update_by_id(deployment, body, api_version="2024-11-01")
        )
