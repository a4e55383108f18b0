"""What az asks for before it creates a machine."""

import pytest

from fairwarning.azure_api.catalogue import operating_system
from tests.azure_api.arm_client import COMPUTE, S, asking

HERE = f"{S}/providers/Microsoft.Compute/locations/westeurope"
UBUNTU = f"{HERE}/publishers/Canonical/artifacttypes/vmimage/offers/UbuntuServer/skus/18.04-LTS"


async def test_any_image_has_one_version_in_a_bare_array() -> None:
    async with asking() as arm:
        found = await arm.get(f"{UBUNTU}/versions", top="1", orderby="name desc")
        (version,) = found
        assert version["location"] == "westeurope"
        one = await arm.get(f"{UBUNTU}/versions/{version['name']}")
        assert one["properties"]["osDiskImage"] == {"operatingSystem": "Linux"}
        assert one["id"] == f"{UBUNTU}/versions/{version['name']}"
        assert (await arm.get(f"{UBUNTU}/versions/latest"))["name"] == version["name"]
        assert (await arm.get(f"{UBUNTU}/versions/18.04.7"))["name"] == "18.04.7"
        assert (await arm.get(f"{UBUNTU}/versions", 400, top="x"))["code"]


@pytest.mark.parametrize(
    ("publisher", "offer", "system"),
    [
        ("Canonical", "0001-com-ubuntu-server-jammy", "Linux"),
        ("MicrosoftWindowsServer", "WindowsServer", "Windows"),
        ("microsoftwindowsdesktop", "windows-11", "Windows"),
        ("MicrosoftSQLServer", "sql2022-ws2022", "Windows"),
        ("MicrosoftSQLServer", "sql2019-ubuntu2004", "Linux"),
        ("MicrosoftCBLMariner", "cbl-mariner", "Linux"),
        ("somebody", "appliance", "Linux"),
    ],
)
def test_the_system_is_known_by_publisher_and_offer(
    publisher: str, offer: str, system: str
) -> None:
    assert operating_system(publisher, offer) == system


async def test_sizes_and_skus_are_the_same() -> None:
    async with asking() as arm:
        sizes = {each["name"] for each in (await arm.get(f"{HERE}/vmSizes"))["value"]}
        path = f"{S}/providers/Microsoft.Compute/skus"
        skus = (await arm.get(path, filter="location eq 'West Europe'"))["value"]
        assert {each["name"] for each in skus} == sizes
        assert {tuple(each["locations"]) for each in skus} == {("westeurope",)}
        assert len((await arm.get(path))["value"]) > len(skus)
        await arm.get(path, 400, filter="tier eq 'Standard'")


async def test_usages_count_what_is_there() -> None:
    async with asking() as arm:
        usages = await arm.get(f"{HERE.replace('westeurope', 'Local')}/usages")
        assert {each["name"]["value"]: each["currentValue"] for each in usages["value"]} == {
            "availabilitySets": 1,
            "virtualMachineScaleSets": 1,
            "virtualMachines": 8,
        }
        elsewhere = await arm.get(f"{HERE}/usages")
        assert {each["currentValue"] for each in elsewhere["value"]} == {0}


async def test_a_short_name_that_nobody_knows_is_answered_with_those_that_work() -> None:
    async with asking() as azure:
        error = await azure.get(f"{COMPUTE}/images/UbuntuLTZ", 404)
        assert error["code"] == "ImageNotFound"
        assert "'UbuntuLTZ'" in error["message"]
        for name in ("UbuntuLTS", "Ubuntu2204", "Win2022Datacenter"):
            assert name in error["message"]
