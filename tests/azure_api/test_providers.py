"""Resource providers: all are registered, and say what their types can do."""

import pytest

from fairwarning.azure_api.regions import REGIONS
from tests.azure_api.arm_client import S, asking


async def test_a_provider_shows_its_types_and_which_of_them_have_tags() -> None:
    async with asking() as arm:
        listed = (await arm.get(f"{S}/providers"))["value"]
        network = await arm.get(f"{S}/providers/microsoft.NETWORK")
    assert network in listed
    assert network["id"] == f"{S}/providers/Microsoft.Network"
    assert {each["registrationState"] for each in listed} == {"Registered"}
    can = {each["resourceType"]: each["capabilities"] for each in network["resourceTypes"]}
    assert can["virtualNetworks"] == "SupportsTags, SupportsLocation"
    assert can["virtualNetworks/subnets"] == "None"
    assert network["resourceTypes"][0]["locations"] == list(REGIONS.values())


@pytest.mark.parametrize("namespace", ["Microsoft.Compute", "microsoft.compute"])
async def test_registering_finds_a_provider_registered(namespace: str) -> None:
    async with asking() as arm:
        found = await arm.read("POST", f"{S}/providers/{namespace}/register")
    assert (found["namespace"], found["registrationState"]) == ("Microsoft.Compute", "Registered")
