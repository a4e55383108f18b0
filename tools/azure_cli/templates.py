"""Checks the commands of az for templates: symbolic names, previews and mode Complete."""

import json

from tools.azure_cli.az import Az, require
from tools.azure_cli.scale_sets import GROUP

_NETWORK = {
    "type": "Microsoft.Network/virtualNetworks",
    "apiVersion": "2024-05-01",
    "name": "net",
    "location": "[resourceGroup().location]",
    "tags": {"run": "[parameters('run')]"},
    "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
}
_OTHER = {**_NETWORK, "name": "other", "dependsOn": ["first"], "tags": {}}


def play_templates(az: Az) -> None:
    az("group", "create", "--name", "myResourceGroup", "--location", "westeurope")
    both = _write(az, "both", {"first": _NETWORK, "second": _OTHER})
    one = _write(az, "one", {"first": {**_NETWORK, "tags": {}}})
    found = _changes(az, "--template-file", both)
    require(found == {"net": "Create", "other": "Create"}, f"both would be created: {found}")
    made = az.flowing("deployment", "group", "create", *GROUP, "--template-file", both)
    run = made["properties"]["parameters"]["run"]["value"]
    require(run.startswith("run-20"), f"the default is the time of the deployment: {run}")
    found = _changes(az, "--template-file", one)
    require(found == {"net": "NoChange", "other": "Ignore"}, f"incremental keeps all: {found}")
    complete = ("--template-file", one, "--mode", "Complete")
    found = _changes(az, *complete)
    require(found == {"net": "NoChange", "other": "Delete"}, f"complete deletes: {found}")
    az("deployment", "group", "what-if", *GROUP, *complete, "--result-format", "ResourceIdOnly",
       "--no-pretty-print")  # fmt: skip
    az.flowing("deployment", "group", "create", *GROUP, *complete)
    left = [each["name"] for each in az("network", "vnet", "list", *GROUP)]
    require(left == ["net"], f"only the network of the template is left: {left}")


def _write(az: Az, name: str, resources: dict[str, object]) -> str:
    template = {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "languageVersion": "2.0",
        "contentVersion": "1.0.0.0",
        "parameters": {"run": {"type": "string", "defaultValue": "[concat('run-', utcNow())]"}},
        "resources": resources,
    }
    path = az.folder / f"{name}.json"
    path.write_text(json.dumps(template))
    return str(path)


def _changes(az: Az, *arguments: str) -> dict[str, str]:
    found = az("deployment", "group", "what-if", *GROUP, *arguments, "--no-pretty-print")
    return {each["resourceId"].rpartition("/")[2]: each["changeType"] for each in found["changes"]}
