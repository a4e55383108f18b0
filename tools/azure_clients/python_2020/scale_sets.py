"""Does one thing to a scale set with the Azure SDK of 2020, and prints the result as JSON.

    python scale_sets.py login [TENANT] | create | list | delete ID | restart ID

It finds the cloud with msrestazure and logs in with ADAL, which speaks the first version of the
login; with a TENANT, at that tenant's own endpoint. Its variables are those of
`fairwarning azure-setup --sdk`.
"""

import json
import os
import sys
from typing import Any

from adal import AuthenticationContext
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.resource import ResourceManagementClient
from msrestazure.azure_active_directory import AdalAuthentication, ServicePrincipalCredentials
from msrestazure.azure_cloud import get_cloud_from_metadata_endpoint

GROUP, SET = "myResourceGroup", "pool"
NOTICE = {"terminate_notification_profile": {"enable": True, "not_before_timeout": "PT5M"}}
IMAGE = {"publisher": "Canonical", "offer": "UbuntuServer", "sku": "18.04-LTS", "version": "latest"}
DISK = {"create_option": "FromImage", "managed_disk": {"storage_account_type": "Standard_LRS"}}
MODEL = {
    "location": "westeurope",
    "sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 3},
    "upgrade_policy": {"mode": "Manual"},
    "virtual_machine_profile": {
        "storage_profile": {"image_reference": IMAGE, "os_disk": DISK},
        "os_profile": {"computer_name_prefix": "pool", "admin_username": "ada"},
        "scheduled_events_profile": NOTICE,
    },
}


class Client:
    def __init__(self, tenant: str) -> None:
        url, subscription = os.environ["AZURE_AUTHORITY_HOST"], os.environ["AZURE_SUBSCRIPTION_ID"]
        credentials = credentials_of(url, tenant)
        self.compute = ComputeManagementClient(credentials, subscription, base_url=url)
        self.resources = ResourceManagementClient(credentials, subscription, base_url=url)
        self.sets = self.compute.virtual_machine_scale_sets

    def login(self, _: str = "") -> Any:
        return [each.name for each in self.resources.resource_groups.list()]

    def create(self) -> Any:
        self.resources.resource_groups.create_or_update(GROUP, {"location": "westeurope"})
        made = self.sets.create_or_update(GROUP, SET, MODEL).result()
        profile = made.virtual_machine_profile.scheduled_events_profile
        return {
            "state": made.provisioning_state,
            "capacity": made.sku.capacity,
            "enable": profile.terminate_notification_profile.enable,
            "notice": profile.terminate_notification_profile.not_before_timeout,
        }

    def list(self) -> Any:
        found = self.compute.virtual_machine_scale_set_vms.list(GROUP, SET)
        return sorted(each.instance_id for each in found)

    def delete(self, id: str) -> Any:
        self.sets.delete_instances(GROUP, SET, [id]).wait()
        return id

    def restart(self, id: str) -> Any:
        self.sets.restart(GROUP, SET, [id]).wait()
        return id


def credentials_of(url: str, tenant: str) -> Any:
    client_id, secret = os.environ["AZURE_CLIENT_ID"], os.environ["AZURE_CLIENT_SECRET"]
    if tenant:
        context = AuthenticationContext(f"{url}/{tenant}", validate_authority=False)
        log_in = context.acquire_token_with_client_credentials
        return AdalAuthentication(log_in, f"{url}/", client_id, secret)
    return ServicePrincipalCredentials(
        client_id=client_id,
        secret=secret,
        tenant=os.environ["AZURE_TENANT_ID"],
        cloud_environment=get_cloud_from_metadata_endpoint(url),
    )


def main(verb: str, *rest: str) -> None:
    tenant = rest[0] if verb == "login" and rest else ""
    try:
        print(json.dumps(getattr(Client(tenant), verb)(*rest)))
    except Exception as error:
        sys.exit(f"ERROR: {' '.join(str(error).split())}")


main(*sys.argv[1:])
