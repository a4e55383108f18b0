"""Checks mistakes: each must give one line that says what is wrong, and change nothing."""

import json

from tools.azure_cli.az import Az, require
from tools.azure_cli.scale_sets import GROUP

_NOBODYS = "11111111-2222-3333-4444-555555555555"
_SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
_TEMPLATE = {
    "$schema": _SCHEMA,
    "contentVersion": "1.0.0.0",
    "resources": [],
    "outputs": {"x": {"type": "string", "value": "[conjure('x')]"}},
}
_NAME = "n" * 70


def play_bad_input(az: Az) -> None:
    az("group", "create", "--name", "myResourceGroup", "--location", "westeurope")
    sets = az.id_of("Microsoft.Compute/virtualMachineScaleSets")
    _refuse_puts(az, sets)
    template = az.folder / "template.json"
    template.write_text(json.dumps(_TEMPLATE))
    az.refused("deployment", "group", "create", *GROUP, "--template-file", str(template),
               says="conjure")  # fmt: skip
    az.refused("deployment", "group", "create", *GROUP, "--template-file", str(template),
               "--what-if", says="conjure")  # fmt: skip
    az.refused("vmss", "create", *GROUP, "--name", "s", "--image", "UbuntuLTZ", code=2,
               says="There is no image 'UbuntuLTZ'")  # fmt: skip
    _create = ("--image", "UbuntuLTS", "--admin-username", "u", "--generate-ssh-keys")
    az.refused("vmss", "create", *GROUP, "--name", "late", *_create,
               "--terminate-notification-time", "30", says="notBeforeTimeout")  # fmt: skip
    az.refused("vmss", "create", *GROUP, "--name", _NAME, *_create)
    az.refused("vmss", "show", *GROUP, "--name", "nowhere", code=3, says="ResourceNotFound")
    az.refused("vm", "restart", *GROUP, "--name", "nowhere", code=3, says="ResourceNotFound")
    az.refused("group", "show", "--name", "nowhere", code=3, says="ResourceGroupNotFound")
    az.refused("group", "list", "--subscription", _NOBODYS, says="not found")
    # az looks a subscription up among those of its login, unless it is told nothing of one.
    other = f"{az.server.azure()['url']}/subscriptions/{_NOBODYS}/resourcegroups"
    az.refused("rest", "--skip-authorization-header", "--url", f"{other}?api-version=2024-11-01",
               says="SubscriptionNotFound")  # fmt: skip
    az("logout")
    az.refused("login", "--service-principal", "--username", "me", "--password", "fw_wrong",
               "--tenant", az.tenant, says="AADSTS7000215")  # fmt: skip
    az.refused("login", "--use-device-code", says="fairwarning azure-setup --run")
    require(not az.server.instances(), "nothing was made")


def _refuse_puts(az: Az, sets: str) -> None:
    sku = {"name": "Standard_D2s_v5", "capacity": 1}
    notice = {"terminateNotificationProfile": {"notBeforeTimeout": "PT5M", "enable": True}}
    profiled = {"virtualMachineProfile": {"scheduledEventsProfile": notice}}
    whole = {"location": "westeurope", "sku": sku, "properties": profiled}
    for name, body, version, says in (
        ("s", {"sku": sku, "properties": {}}, "2024-11-01", "LocationRequired"),
        ("s", whole, "2018-10-01", "Could not find member 'scheduledEventsProfile'"),
        (_NAME, whole, "2024-11-01", "InvalidResourceName"),
        ("s", {**whole, "sku": {"capacity": "many"}}, "2024-11-01", ""),
    ):
        url = f"{sets}/{name}?api-version={version}"
        az.refused("rest", "--method", "put", "--body", json.dumps(body), "--url", url, says=says)
    gadgets = sets.replace("virtualMachineScaleSets", "gadgets")
    az.refused("rest", "--url", f"{gadgets}/g?api-version=2024-11-01", says="InvalidResourceType")
