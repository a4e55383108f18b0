"""No body ends in an error of the server, and every refusal is ARM's."""

import itertools
from collections.abc import AsyncIterator

import pytest

from tests.azure_api.arm_client import COMPUTE, GROUP, NETWORK, ArmClient, running_client
from tests.azure_api.malformed_bodies import REFUSED, REQUESTS, malformed

STRIDE = 97
"""Only each 97th body of a request is sent, so that this stays fast. All were sent once."""
AZURE_CODES = frozenset({
    "AnotherOperationInProgress", "BadRequest", "Conflict", "DuplicateResourceName",
    "InUseSubnetCannotBeDeleted", "InvalidAddressPrefixFormat", "InvalidDeploymentMode",
    "InvalidParameter", "InvalidPrivateIPAddress", "InvalidRequestContent", "InvalidRequestFormat",
    "InvalidResourceGroupLocation", "InvalidResourceLocation", "InvalidResourceName",
    "InvalidResourceReference", "InvalidTagNameCharacters", "InvalidTemplate",
    "LocationNotAvailableForResourceGroup", "LocationNotAvailableForResourceType",
    "LocationRequired", "MissingApiVersionParameter", "MultipleErrorsOccurred",
    "NetcfgSubnetRangeOutsideVnet", "NetcfgSubnetRangesOverlap", "NicInUse",
    "NoAddressPrefixOrPoolProvided", "NoRegisteredProviderFound", "NotFound",
    "OperationNotAllowed", "PrivateIPAddressInUse", "PrivateIPAddressNotInSubnet",
    "PropertyChangeNotAllowed", "RequestEntityTooLarge", "ResourceGroupNotFound",
    "ResourceNotFound", "ScopeLocked", "SubnetIsFull",
})  # fmt: skip
LISTS = (
    f"{COMPUTE}/virtualMachines", f"{COMPUTE}/virtualMachineScaleSets",
    f"{COMPUTE}/availabilitySets", f"{NETWORK}/virtualNetworks", f"{NETWORK}/networkInterfaces",
    f"{NETWORK}/publicIPAddresses", f"{NETWORK}/loadBalancers", f"{NETWORK}/networkSecurityGroups",
    f"{GROUP}/resources", f"{GROUP}/providers/Microsoft.Insights/autoscaleSettings",
    f"{GROUP}/providers/Microsoft.Authorization/locks",
)  # fmt: skip


@pytest.fixture
async def arm() -> AsyncIterator[ArmClient]:
    async with running_client(ArmClient) as client:
        yield client


async def send(arm: ArmClient, method: str, path: str, raw: bytes) -> int:
    answer = await arm.http.request(method, path, content=raw, params={"api-version": arm.version})
    status = answer.status_code
    what = (method, path.rpartition("/")[0][-60:], raw[:200], status, answer.text[:300])
    assert status < 500, what
    assert status not in (401, 403), what
    if status >= 400:
        error = answer.json().get("error", {})
        assert error.get("code") in AZURE_CODES, what
        assert error["message"], what
        assert all(each["code"] for each in error.get("details", [])), what
    return status


@pytest.mark.parametrize("size", [5, True, 1.5])
async def test_a_size_that_is_no_text_spoils_no_list(arm: ArmClient, size: object) -> None:
    body = {"location": "local", "properties": {"hardwareProfile": {"vmSize": size}}}
    await arm.refused("PUT", f"{COMPUTE}/virtualMachines/v", body)
    await arm.ask("GET", f"{COMPUTE}/virtualMachines")


async def test_no_body_breaks_the_server(arm: ArmClient) -> None:
    for (method, path), body in REQUESTS.items():
        good = await arm.answer(method, path, body)
        assert (good.status_code < 300) is not path.endswith(REFUSED), (path, good.text)
        for raw in itertools.islice(malformed(body), len(path) % STRIDE, None, STRIDE):
            status = await send(arm, method, path, raw)
            if method == "PUT" and status < 300 and "applyUpdates" not in path:
                await arm.ask("GET", path)
    for path in LISTS:
        await arm.ask("GET", path)


@pytest.mark.parametrize(
    "path", [path for method, path in REQUESTS if method == "PUT"], ids=lambda p: p.split("/")[-2]
)
@pytest.mark.parametrize("name", ["", " ", "%20", ".", "a%2Fb", "x" * 300, "%00", "a%0Ab", "ü"])
async def test_no_name_breaks_the_server(arm: ArmClient, path: str, name: str) -> None:
    body = REQUESTS["PUT", path]
    url = f"{path.rpartition('/')[0]}/{name}"
    for method in ("PUT", "PATCH", "DELETE"):
        answer = await arm.answer(method, url, body)
        assert answer.status_code < 500, (method, url, answer.text)
        if answer.status_code >= 400:
            error = answer.json().get("error", {})
            assert error.get("code"), (method, url, answer.text)
            assert error["message"], answer.text
