"""Knows Azure's regions, and refuses others unless the fleet has instances there."""

from fairwarning.azure_api.body_values import location_of
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import scopes_in
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall
from fairwarning.core.resources import DEFAULT_LOCATION

REGIONS = {
    DEFAULT_LOCATION: "Local",
    "australiacentral": "Australia Central",
    "australiacentral2": "Australia Central 2",
    "australiaeast": "Australia East",
    "australiasoutheast": "Australia Southeast",
    "austriaeast": "Austria East",
    "belgiumcentral": "Belgium Central",
    "brazilsouth": "Brazil South",
    "brazilsoutheast": "Brazil Southeast",
    "canadacentral": "Canada Central",
    "canadaeast": "Canada East",
    "centralindia": "Central India",
    "centralus": "Central US",
    "centraluseuap": "Central US EUAP",
    "chilecentral": "Chile Central",
    "chinaeast": "China East",
    "chinaeast2": "China East 2",
    "chinaeast3": "China East 3",
    "chinanorth": "China North",
    "chinanorth2": "China North 2",
    "chinanorth3": "China North 3",
    "denmarkeast": "Denmark East",
    "eastasia": "East Asia",
    "eastus": "East US",
    "eastus2": "East US 2",
    "eastus2euap": "East US 2 EUAP",
    "francecentral": "France Central",
    "francesouth": "France South",
    "germanynorth": "Germany North",
    "germanywestcentral": "Germany West Central",
    "indonesiacentral": "Indonesia Central",
    "israelcentral": "Israel Central",
    "italynorth": "Italy North",
    "japaneast": "Japan East",
    "japanwest": "Japan West",
    "jioindiacentral": "Jio India Central",
    "jioindiawest": "Jio India West",
    "koreacentral": "Korea Central",
    "koreasouth": "Korea South",
    "malaysiawest": "Malaysia West",
    "mexicocentral": "Mexico Central",
    "newzealandnorth": "New Zealand North",
    "northcentralus": "North Central US",
    "northeurope": "North Europe",
    "norwayeast": "Norway East",
    "norwaywest": "Norway West",
    "polandcentral": "Poland Central",
    "qatarcentral": "Qatar Central",
    "southafricanorth": "South Africa North",
    "southafricawest": "South Africa West",
    "southcentralus": "South Central US",
    "southeastasia": "Southeast Asia",
    "southindia": "South India",
    "spaincentral": "Spain Central",
    "swedencentral": "Sweden Central",
    "swedensouth": "Sweden South",
    "switzerlandnorth": "Switzerland North",
    "switzerlandwest": "Switzerland West",
    "taiwannorth": "Taiwan North",
    "uaecentral": "UAE Central",
    "uaenorth": "UAE North",
    "uksouth": "UK South",
    "ukwest": "UK West",
    "usgovarizona": "USGov Arizona",
    "usgovtexas": "USGov Texas",
    "usgovvirginia": "USGov Virginia",
    "westcentralus": "West Central US",
    "westeurope": "West Europe",
    "westindia": "West India",
    "westus": "West US",
    "westus2": "West US 2",
    "westus3": "West US 3",
}
"""The display names of the regions. Networks can also be `global`."""


async def refuse_region(arm: Arm, call: ArmCall) -> None:
    """Raises ArmError if a PUT names a region that neither Azure nor the fleet has."""
    if call.method != "PUT" or not call.body or call.body.get("location") is None:
        return
    location = location_of(call.body)
    if location in REGIONS or location == "global":
        return
    async for scope in scopes_in(arm, call.path.subscription):
        if scope.roster.location.lower() == location:
            return
    raise _not_available(call.path, location[:100])


def _not_available(path: ResourcePath, location: str) -> ArmError:
    known = ",".join(REGIONS)
    if path.types[:1] == ("subscriptions",):
        return ArmError(
            400,
            "LocationNotAvailableForResourceGroup",
            f"The provided location '{location}' is not available for resource group. List of "
            f"available regions is '{known}'.",
        )
    return ArmError(
        400,
        "LocationNotAvailableForResourceType",
        f"The provided location '{location}' is not available for resource type '{path.type}'. "
        f"List of available regions for the resource type is '{known}'.",
    )
