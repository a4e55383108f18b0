"""What Azure refuses is refused, with Azure's code and words."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairwarning.azure_api.api_versions import COMPUTE_VERSIONS
from tests.azure_api.arm_client import COMPUTE, GROUP, NETWORK, ArmClient, S, running_client
from tests.azure_api.scale_set_client import SETS, body_of
from tests.azure_api.vm_client import VMS, vm_body


@pytest.fixture
async def arm() -> AsyncIterator[ArmClient]:
    async with running_client(ArmClient) as client:
        yield client


@pytest.mark.parametrize("version", ["2024-11-02", "2018-01-01", "2024-11-01-preview"])
@pytest.mark.parametrize("path", [f"{VMS}/db", f"{SETS}/workers", VMS, f"{SETS}/workers/restart"])
async def test_a_version_of_compute_that_never_was(arm: ArmClient, path: str, version: str) -> None:
    method = "POST" if path.endswith("restart") else "GET"
    code, message = await arm.refused(method, path, version=version)
    type = "virtualMachines" if path.startswith(VMS) else "virtualMachineScaleSets"
    assert code == "NoRegisteredProviderFound"
    assert message.startswith(
        f"No registered resource provider found for location '*' and API version '{version}' for "
        f"type '{type}'. The supported api-versions are '2015-05-01-preview, 2015-06-15, "
    )


@pytest.mark.parametrize("version", COMPUTE_VERSIONS)
async def test_each_version_that_was(arm: ArmClient, version: str) -> None:
    await arm.get(f"{VMS}/db", version=version)


@pytest.mark.parametrize("version", ["2024-13-01", "2023-02-30", "1999-01-01", "2999-01-01"])
@pytest.mark.parametrize("path", [GROUP, f"{NETWORK}/virtualNetworks", VMS])
async def test_a_version_that_is_no_day_of_arm(arm: ArmClient, path: str, version: str) -> None:
    code, message = await arm.refused("GET", path, version=version)
    assert code in ("InvalidApiVersionParameter", "NoRegisteredProviderFound")
    assert f"'{version}'" in message


async def test_a_version_newer_than_this_server_is_taken(arm: ArmClient) -> None:
    await arm.get(f"{VMS}/db", version="2026-10-01")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{VMS}/v", vm_body()),
        (f"{SETS}/s", body_of()),
        (f"{COMPUTE}/availabilitySets/a", {"properties": {}}),
        (f"{NETWORK}/publicIPAddresses/p", {}),
    ],
)
async def test_an_unknown_region(arm: ArmClient, path: str, body: dict[str, Any]) -> None:
    code, message = await arm.refused("PUT", path, {**body, "location": "Mars North"})
    type = "/".join(path.split("/")[-3:-1])
    assert code == "LocationNotAvailableForResourceType"
    assert message.startswith(
        f"The provided location 'marsnorth' is not available for resource type '{type}'. List of "
        "available regions for the resource type is '"
    )
    assert "westeurope" in message
    await arm.get(path, 404)


async def test_an_unknown_region_of_a_group(arm: ArmClient) -> None:
    code, message = await arm.refused("PUT", f"{S}/resourcegroups/g", {"location": "marsnorth"})
    assert code == "LocationNotAvailableForResourceGroup"
    assert message.startswith(
        "The provided location 'marsnorth' is not available for resource group. List of available "
        "regions is '"
    )


@pytest.mark.parametrize("location", ["cellar", "Cellar"])
async def test_a_region_that_the_fleet_has_is_known(arm: ArmClient, location: str) -> None:
    fleet = {"vm": [{"name": "own", "location": location}]}
    await arm.rig.post("/fleet", fleet)
    await arm.put(f"{VMS}/v", {**vm_body(), "location": location})
    await arm.put(f"{S}/resourcegroups/g", {"location": location})


@pytest.mark.parametrize("name", ["a<b", "a>b", "50%", "a&b", "a\\b", "what?", "a/b", "a\nb"])
@pytest.mark.parametrize("path", [f"{VMS}/db", f"{SETS}/workers", GROUP])
async def test_a_tag_name_with_a_reserved_character(arm: ArmClient, path: str, name: str) -> None:
    code, message = await arm.refused("PATCH", path, {"tags": {name: "fine<>%&\\?/"}})
    assert code == "InvalidTagNameCharacters"
    assert message == (
        f"The tag names '{name}' have reserved characters '<,>,%,&,\\,?,/' or control characters."
    )
    await arm.patch(path, {"tags": {"fine": "fine<>%&\\?/"}})


async def test_a_single_placement_group_has_a_hundred_at_most(arm: ArmClient) -> None:
    body = body_of(200)
    body["properties"]["singlePlacementGroup"] = True
    code, message = await arm.refused("PUT", f"{SETS}/s", body, 409)
    assert code == "OperationNotAllowed"
    assert message == (
        "Unable to create or update Virtual Machine Scale Set 's' as it exceeds the total limit of "
        "'100' Virtual Machine instances."
    )
    body["sku"]["capacity"] = 100
    await arm.put(f"{SETS}/s", body)
    more = {"sku": {"capacity": 101}}
    assert (await arm.refused("PATCH", f"{SETS}/s", more, 409))[0] == "OperationNotAllowed"
    await arm.patch(f"{SETS}/s", {**more, "properties": {"singlePlacementGroup": False}})


@pytest.mark.parametrize("hardware", [{}, {"hardwareProfile": None}])
async def test_a_vm_needs_a_hardware_profile(arm: ArmClient, hardware: dict[str, Any]) -> None:
    body = {"location": "local", "properties": hardware}
    error = await arm.read("PUT", f"{VMS}/v", body, 400)
    assert error == {
        "code": "InvalidParameter",
        "message": "Required parameter 'hardwareProfile' is missing (null).",
        "target": "hardwareProfile",
    }


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (f"{VMS}/db", "instanceView, userData"),
        (f"{SETS}/workers", "userData"),
        (f"{SETS}/workers/virtualMachines/0", "instanceView, userData"),
        (f"{SETS}/workers/virtualMachines", "instanceView"),
        (VMS, "instanceView"),
        (f"{COMPUTE}/availabilitySets", "virtualMachines/$ref"),
    ],
)
async def test_a_bad_expand(arm: ArmClient, path: str, allowed: str) -> None:
    error = await arm.read("GET", path, None, 400, expand="everything")
    assert error == {
        "code": "InvalidParameter",
        "message": "The value 'everything' of parameter '$expand' is not allowed. Allowed values "
        f"are: {allowed}.",
        "target": "$expand",
    }
    await arm.get(path, expand=allowed.split(", ", maxsplit=1)[0].upper())


async def test_a_list_of_vms_has_the_views_if_asked(arm: ArmClient) -> None:
    rows = (await arm.get(VMS, expand="instanceView"))["value"]
    assert all("statuses" in row["properties"]["instanceView"] for row in rows)


async def test_a_token_that_is_no_token(arm: ArmClient) -> None:
    answer = await arm.http.get(
        GROUP, params={"api-version": "2024-11-01"}, headers={"Authorization": "Bearer nonsense"}
    )
    assert answer.status_code == 401
    error = answer.json()["error"]
    assert error["code"] == "InvalidAuthenticationToken"
    assert error["message"].startswith("The access token is invalid.")
    challenge = answer.headers["www-authenticate"]
    assert 'error="invalid_token"' in challenge


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "LOCK"])
async def test_other_methods_are_refused_in_the_form_of_arm(arm: ArmClient, method: str) -> None:
    for path in (GROUP, f"{VMS}/db", "/subscriptions"):
        answer = await arm.answer(method, path)
        assert answer.status_code == 405
        error = answer.json()["error"]
        assert error["code"] == "MethodNotAllowed"
        assert method in error["message"]
        assert "GET" in answer.headers["allow"]
