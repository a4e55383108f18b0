"""From a path to its handler, and what is said where there is none."""

from typing import Any

import pytest

from fairwarning.azure_api.app import Router, error_response, role_of
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.paths import resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Reply
from fairwarning.azure_api.routes import TABLES
from fairwarning.operator_api.auth import LOCAL, Role
from fairwarning.operator_api.problems import Problem
from tests.azure_api.arm_client import COMPUTE, GROUP, ArmClient, S, asking


async def answer(_: Arm, call: ArmCall) -> Reply:
    return Reply(200, call.path.id)


def test_no_route_has_two_handlers() -> None:
    with pytest.raises(AssertionError, match="twice"):
        Router([{("GET", "a.b", ""): answer}, {("GET", "a.b", ""): answer}])
    Router(TABLES)


def test_all_routes_are_written_in_lower_case() -> None:
    routes = [route for table in TABLES for route in table]
    assert [each for each in routes if each[1:] != (each[1].lower(), each[2].lower())] == []
    assert {method for method, _, _ in routes} <= {
        "GET", "HEAD", "PUT", "PATCH", "POST", "DELETE",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", f"{COMPUTE}/gadgets/g", 404, "InvalidResourceType"),
        ("GET", f"{COMPUTE}/gadgets", 404, "InvalidResourceType"),
        ("GET", f"{S}/providers/Contoso.Own/things/t", 404, "InvalidResourceNamespace"),
        ("POST", f"{COMPUTE}/virtualMachines/db/explode", 404, "InvalidAction"),
        ("DELETE", f"{COMPUTE}/virtualMachines/db/restart", 405, "MethodNotAllowed"),
        ("GET", "/subscriptions/none", 404, "SubscriptionNotFound"),
        ("GET", f"{COMPUTE.replace('default', 'none')}/virtualMachines/db", 404,
         "ResourceGroupNotFound"),
    ],
)  # fmt: skip
async def test_what_is_not_there_is_said_in_azures_codes(
    method: str, path: str, status: int, code: str
) -> None:
    async with asking() as arm:
        assert (await arm.read(method, path, None, status))["code"] == code


async def test_a_wrong_method_is_told_the_right_ones() -> None:
    async with asking() as arm:
        found = await arm.answer("PUT", f"{COMPUTE}/virtualMachines/db/restart")
        assert found.headers["Allow"] == "POST"


async def test_handlers_see_true_spellings() -> None:
    async with asking() as arm:
        await arm.put_group("Shop")
        path = f"{S}/RESOURCEGROUPS/SHOP/providers/microsoft.network//PublicIpAddresses/Ip"
        made = await arm.read("PUT", path, {"location": "westeurope"}, 201)
        assert made["id"] == (
            f"{S}/resourceGroups/Shop/providers/Microsoft.Network/publicIPAddresses/Ip"
        )


@pytest.mark.parametrize(
    ("version", "code"),
    [("", "MissingApiVersionParameter"), ("latest", "InvalidApiVersionParameter")],
)
async def test_a_version_is_needed_and_a_date(version: str, code: str) -> None:
    async with asking() as arm:
        found = await arm.http.get(S, params={"api-version": version} if version else {})
        assert (found.status_code, found.json()["error"]["code"]) == (400, code)
        assert (await arm.http.get(S, params={"API-Version": "2022-12-01"})).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff", b'{"a":' * 200 + b"1" + b"}" * 200])
async def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    async with asking() as arm:
        found = await arm.http.put(
            f"{S}/resourcegroups/x", content=body, params={"api-version": "2024-11-01"}
        )
        assert (found.status_code, found.json()["error"]["code"]) == (400, "InvalidRequestContent")


async def test_a_route_for_a_whole_namespace_yields_to_one_for_a_type() -> None:
    async def own(_: Arm, __: ArmCall) -> Reply:
        return Reply(204)

    router = Router([{("GET", "a.b/*", ""): answer, ("GET", "a.b/cs", ""): own}])
    nothing: Any = None

    async def status(path: str) -> int:
        place, query = resource_path(path), {"api-version": "2024-11-01"}
        call = ArmCall(method="GET", path=place, query=query, caller=LOCAL, base_url="")
        return (await router.answer(nothing, call)).status

    assert await status("/providers/a.b/CS/1") == 204
    assert await status("/providers/A.B/ds/1") == 200


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (f"{GROUP}/providers/Microsoft.Web/sites/a", "Microsoft.Web/sites"),
        (f"{S}/providers/microsoft.storage/storageAccounts", "microsoft.storage/storageAccounts"),
        (f"{COMPUTE}/galleries/g/images/i", "Microsoft.Compute/galleries/images"),
        (f"{COMPUTE}/disks", "Microsoft.Compute/disks"),
    ],
)  # fmt: skip
async def test_what_is_not_served_is_said_to_be_not_served(
    arm: ArmClient, path: str, named: str
) -> None:
    error = await arm.get(path, 404)
    told = error["message"].lower()
    assert told == f"fairwarning does not serve {named.lower()}; see docs/azure.md."
    assert error["code"] in ("InvalidResourceNamespace", "InvalidResourceType")


@pytest.mark.parametrize(
    ("error", "status", "is_logged"),
    [
        (ValueError("a bug with a secret"), 500, True),
        (ArmError(500, "InternalServerError", "as meant"), 500, False),
        (ArmError(409, "Conflict", "no"), 409, False),
        (Problem(503, "stopping", "come back"), 503, False),
    ],
)
def test_a_bug_is_logged_and_not_told_and_a_refusal_is_told_and_not_logged(
    error: Exception, status: int, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    response = error_response(error)
    assert response.status_code == status
    assert b"secret" not in bytes(response.body)
    assert ("a request to ARM broke" in caplog.text) is is_logged


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", f"{COMPUTE}/virtualMachines/db", Role.VIEWER),
        ("HEAD", f"{COMPUTE}/virtualMachines/db", Role.VIEWER),
        ("POST", f"{COMPUTE}/virtualMachines/db/restart", Role.OPERATOR),
        ("DELETE", f"{COMPUTE}/virtualMachines/db", Role.OPERATOR),
    ],
)
def test_who_only_looks_needs_no_more_than_that(method: str, path: str, role: Role) -> None:
    assert role_of(method, resource_path(path)) is role
