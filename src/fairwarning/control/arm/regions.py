"""Names of regions. Any other name will do as well: a region is only a word here."""

from fairwarning.core.resources import DEFAULT_LOCATION

REGIONS = {
    DEFAULT_LOCATION: "Local",
    "australiaeast": "Australia East",
    "brazilsouth": "Brazil South",
    "centralus": "Central US",
    "eastasia": "East Asia",
    "eastus": "East US",
    "eastus2": "East US 2",
    "germanywestcentral": "Germany West Central",
    "japaneast": "Japan East",
    "northeurope": "North Europe",
    "southeastasia": "Southeast Asia",
    "uksouth": "UK South",
    "westeurope": "West Europe",
    "westus": "West US",
    "westus2": "West US 2",
    "westus3": "West US 3",
}
