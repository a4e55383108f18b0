"""Subscriptions, their locations, and a list of all that is in them."""

from fairwarning.azure_api.catalogue import REGIONS
from fairwarning.azure_api.group_state import groups_of, needed, subscriptions
from fairwarning.azure_api.inventory import resources_in
from fairwarning.azure_api.lists import conditions, first, has_tag, listed
from fairwarning.azure_api.login import TENANT_ID
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION

_FILTERS = ("resourceType", "name", "location", "resourceGroup", "tagName", "tagValue")


async def list_all(arm: Arm, _: ArmCall) -> Reply:
    return Reply(200, {"value": [_shown(each) for each in subscriptions(arm)]})


async def show(_: Arm, call: ArmCall) -> Reply:
    return Reply(200, _shown(call.path.subscription))


async def list_locations(_: Arm, call: ArmCall) -> Reply:
    place = f"/subscriptions/{call.path.subscription}/locations"
    rows = [
        {
            "id": f"{place}/{name}",
            "name": name,
            "type": "Region",
            "displayName": shown,
            "regionalDisplayName": shown,
            "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
        }
        for name, shown in REGIONS.items()
    ]
    return Reply(200, {"value": rows})


async def list_resources(arm: Arm, call: ArmCall) -> Reply:
    wanted = conditions(call, _FILTERS)
    path = call.path
    group = path.group and (await needed(arm, path.subscription, path.group)).name
    if not group:
        # A look at each group clears away those whose deletion is over.
        async for _ in groups_of(arm, path.subscription):
            pass
    rows = await resources_in(arm, path.subscription, group)
    return await listed(call, first(call, (row for row in rows if _is_wanted(row, wanted))))


def _is_wanted(row: Json, wanted: dict[str, str]) -> bool:
    facts = {
        "resourcetype": row["type"],
        "name": row["name"],
        "location": row["location"],
        "resourcegroup": row["id"].split("/")[4],
    }
    is_same = all(
        facts[name].lower() == text.lower() for name, text in wanted.items() if name in facts
    )
    return is_same and has_tag(row.get("tags", {}), wanted)


def _shown(subscription: str) -> Json:
    is_default = subscription == DEFAULT_SUBSCRIPTION
    return {
        "id": f"/subscriptions/{subscription}",
        "subscriptionId": subscription,
        "tenantId": TENANT_ID,
        "displayName": "Fairwarning" if is_default else f"Fairwarning {subscription}",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "subscriptionPolicies": {"spendingLimit": "Off"},
        "managedByTenants": [],
    }


_KEY = "microsoft.resources/subscriptions"
ROUTES: Routes = {
    ("GET", "microsoft.resources", "subscriptions"): list_all,
    ("GET", _KEY, ""): show,
    ("GET", _KEY, "locations"): list_locations,
    ("GET", _KEY, "resources"): list_resources,
    ("GET", f"{_KEY}/resourcegroups", "resources"): list_resources,
}
