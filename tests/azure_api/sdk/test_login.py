"""Who gets in, and how the SDK hears that somebody does not."""

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.core.exceptions import ResourceNotFoundError as NotFound
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

from tests.azure_api.sdk.bodies import create_vm
from tests.azure_api.sdk.sdk_clients import GROUP, LOCATION, SdkClients

NOBODYS = "11111111-2222-3333-4444-555555555555"


def test_the_group_that_was_made_is_there(azure: SdkClients) -> None:
    groups = azure.resources.resource_groups
    assert groups.check_existence(GROUP)
    assert not groups.check_existence("elsewhere")
    assert [each.name for each in groups.list()] == [GROUP]
    found = groups.get(GROUP.upper())
    assert (found.name, found.location) == (GROUP, LOCATION)


def test_a_wrong_secret_is_an_authentication_error(azure: SdkClients) -> None:
    stranger = azure.client(ComputeManagementClient, secret="fw_wrong")
    with pytest.raises(ClientAuthenticationError, match="AADSTS7000215"):
        stranger.virtual_machines.get(GROUP, "vm")


def test_whoever_may_only_read_cannot_create(azure: SdkClients) -> None:
    viewer = azure.client(ResourceManagementClient, secret=azure.token("viewer"))
    assert viewer.resource_groups.get(GROUP).name == GROUP
    with pytest.raises(HttpResponseError) as refused:
        viewer.resource_groups.create_or_update("mine", {"location": LOCATION})
    assert refused.value.status_code == 403
    assert refused.value.error is not None
    assert refused.value.error.code == "AuthorizationFailed"


def test_an_unknown_subscription_is_not_found(azure: SdkClients) -> None:
    client = azure.client(ComputeManagementClient, NOBODYS)
    with pytest.raises(NotFound, match="SubscriptionNotFound"):
        client.virtual_machines.get(GROUP, "vm")


def test_an_unknown_type_is_not_found(azure: SdkClients) -> None:
    path = f"/subscriptions/{azure.subscription}/resourceGroups/{GROUP}/providers"
    with pytest.raises(NotFound, match="InvalidResourceType"):
        azure.resources.resources.get_by_id(
            f"{path}/Microsoft.Compute/gadgets/g", api_version="2024-11-01"
        )


def test_a_deleted_group_takes_all_that_is_in_it_along(azure: SdkClients) -> None:
    create_vm(azure, "vm")
    azure.finish(azure.resources.resource_groups.begin_delete(GROUP))
    assert not azure.resources.resource_groups.check_existence(GROUP)
    assert azure.instances() == {}
