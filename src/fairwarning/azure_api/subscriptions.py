"""These handlers list subscriptions, their locations and their resources."""

from fairwarning.azure_api.discovery import TENANT_ID
from fairwarning.azure_api.fleet_view import resources_in
from fairwarning.azure_api.group_state import get_group, iterate_groups, subscriptions
from fairwarning.azure_api.lists import first_rows, has_tag, list_reply, read_filter
from fairwarning.azure_api.regions import REGIONS
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION

_FILTERS = ("resourceType", "name", "location", "resourceGroup", "tagName", "tagValue")


async def list_subscriptions(arm: Arm, _: ArmCall) -> Reply:
    return Reply(200, {"value": [_subscription_json(each) for each in subscriptions(arm)]})


async def get(_: Arm, call: ArmCall) -> Reply:
    return Reply(200, _subscription_json(call.path.subscription))


async def list_locations(_: Arm, call: ArmCall) -> Reply:
    place = f"/subscriptions/{call.path.subscription}/locations"
    rows = [
        {
            "id": f"{place}/{name}",
            "name": name,
            "type": "Region",
            "displayName": display_name,
            "regionalDisplayName": display_name,
            "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
        }
        for name, display_name in REGIONS.items()
    ]
    return Reply(200, {"value": rows})


async def list_resources(arm: Arm, call: ArmCall) -> Reply:
    wanted = read_filter(call, _FILTERS)
    path = call.path
    group = path.group and (await get_group(arm, path.subscription, path.group)).name
    if not group:
        # The lookup of a group deletes its records if its deletion is over.
        async for _ in iterate_groups(arm, path.subscription):
            pass
    rows = await resources_in(arm, path.subscription, group)
    return await list_reply(
        call, first_rows(call, (row for row in rows if _is_wanted(row, wanted)))
    )


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


def _subscription_json(subscription: str) -> Json:
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
    ("GET", "microsoft.resources", "subscriptions"): list_subscriptions,
    ("GET", _KEY, ""): get,
    ("GET", _KEY, "locations"): list_locations,
    ("GET", _KEY, "resources"): list_resources,
    ("GET", f"{_KEY}/resourcegroups", "resources"): list_resources,
}
