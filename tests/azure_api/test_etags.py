"""If-Match and If-None-Match: nobody overwrites what he has not seen."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairwarning.azure_api.scale_sets import handlers as set_handlers
from fairwarning.azure_api.scale_sets import instances
from fairwarning.azure_api.virtual_machines import handlers as vm_handlers
from tests.azure_api.arm_client import COMPUTE, GROUP, NETWORK, ArmClient, S, running_client
from tests.azure_api.scale_set_client import SETS, body_of
from tests.azure_api.vm_client import NICS, VMS, VNET, interface_body, network_body, vm_body

AVAILABILITY = f"{COMPUTE}/availabilitySets"
SUBNET = f"{VNET}/subnets/inner"
BODIES: dict[str, Any] = {
    f"{VMS}/v": vm_body(),
    f"{SETS}/s": body_of(),
    f"{AVAILABILITY}/a": {"location": "local", "properties": {}},
    VNET: network_body(),
    f"{NETWORK}/publicIPAddresses/p": {"location": "local", "properties": {}},
    f"{S}/resourcegroups/g": {"location": "local"},
}
WITH_TAG = [VNET, f"{VMS}/v", f"{SETS}/s", f"{NETWORK}/publicIPAddresses/p"]
"""Resources whose body has an etag on Azure."""
PATHS = [pytest.param(path, id=path.split("/")[-2]) for path in BODIES]


@pytest.fixture
async def arm() -> AsyncIterator[ArmClient]:
    async with running_client(ArmClient) as client:
        yield client


async def send(
    arm: ArmClient, method: str, path: str, body: Any = None, **conditions: str
) -> tuple[int, Any]:
    """The status and the body, or the content of the error."""
    headers = {f"If-{name.replace('_', '-')}": tag for name, tag in conditions.items()}
    parameters = {"api-version": "2024-11-01"}
    answer = await arm.http.request(method, path, json=body, params=parameters, headers=headers)
    found = answer.json() if answer.content else {}
    return answer.status_code, found.get("error", found)


async def make(arm: ArmClient, path: str) -> str:
    """The tag of what was made."""
    await arm.answer("PUT", path, BODIES[path])
    return await tag_of(arm, path)


async def tag_of(arm: ArmClient, path: str) -> str:
    answer = await arm.ask("GET", path)
    return answer.headers["etag"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_tag_stays_until_the_resource_changes(arm: ArmClient, path: str) -> None:
    first = await make(arm, path)
    assert await tag_of(arm, path) == first
    status, _ = await send(arm, "PATCH", path, {"tags": {"a": "b"}}, Match=first)
    assert status == 200
    assert await tag_of(arm, path) != first


@pytest.mark.parametrize("path", WITH_TAG)
async def test_the_body_has_the_tag_too(arm: ArmClient, path: str) -> None:
    tag = await make(arm, path)
    assert (await arm.get(path))["etag"] == tag
    listed = (await arm.get(path.rpartition("/")[0]))["value"]
    assert tag in [each["etag"] for each in listed]


async def test_an_availability_set_has_it_in_the_header_only(arm: ArmClient) -> None:
    await make(arm, f"{AVAILABILITY}/a")
    assert "etag" not in await arm.get(f"{AVAILABILITY}/a")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", PATHS)
async def test_an_old_tag_changes_nothing(arm: ArmClient, path: str, method: str) -> None:
    old = await make(arm, path)
    await arm.ask("PATCH", path, {"tags": {"new": "1"}})
    body = {**BODIES[path], "tags": {"lost": "1"}}
    status, error = await send(arm, method, path, body, Match=old)
    assert (status, error["code"]) == (412, "PreconditionFailed")
    assert (await arm.get(path))["tags"] == {"new": "1"}
    status, _ = await send(arm, method, path, body, Match=f'"x", {await tag_of(arm, path)}')
    assert status in (200, 202)


@pytest.mark.parametrize("path", PATHS)
async def test_none_means_that_nothing_is_overwritten(arm: ArmClient, path: str) -> None:
    body = BODIES[path]
    status, _ = await send(arm, "PUT", path, body, None_Match="*")
    assert status in (200, 201)
    status, error = await send(arm, "PUT", path, {**body, "tags": {"a": "b"}}, None_Match="*")
    assert (status, error["code"]) == (412, "PreconditionFailed")
    assert (await arm.get(path)).get("tags", {}) == {}


@pytest.mark.parametrize("path", PATHS)
async def test_any_needs_something_that_exists(arm: ArmClient, path: str) -> None:
    status, error = await send(arm, "PUT", path, BODIES[path], Match="*")
    assert (status, error["code"]) == (412, "PreconditionFailed")
    await arm.get(path, 404)
    await make(arm, path)
    status, _ = await send(arm, "PUT", path, BODIES[path], Match="*")
    assert status == 200


async def test_compute_and_network_refuse_in_their_own_words(arm: ArmClient) -> None:
    now = await make(arm, f"{VMS}/v")
    _, error = await send(arm, "PATCH", f"{VMS}/v", {"tags": {}}, Match='"2"')
    assert error["message"] == (
        f'Etag provided in if-match header "2" does not match etag {now} of resource.'
    )
    now = await make(arm, VNET)
    _, error = await send(arm, "PATCH", VNET, {"tags": {}}, Match='W/"2"')
    assert error["message"] == "Precondition failed."
    (detail,) = error["details"]
    assert detail["code"] == "PreconditionFailedEtagMismatch"
    assert detail["message"] == (
        f'Etag provided in if-match header W/"2" does not match etag {now} of resource {VNET} '
        "in NRP data store."
    )


async def test_a_part_has_the_tag_of_its_resource(arm: ArmClient) -> None:
    tag = await make(arm, VNET)
    assert (await arm.get(SUBNET))["etag"] == tag
    body = {"properties": {"addressPrefix": "10.9.0.0/25"}}
    assert (await send(arm, "PUT", SUBNET, body, Match='W/"old"'))[0] == 412
    assert (await send(arm, "PUT", SUBNET, body, None_Match="*"))[0] == 412
    assert (await send(arm, "DELETE", SUBNET, Match='W/"old"'))[0] == 412
    assert (await send(arm, "PUT", SUBNET, body, Match=tag))[0] == 200


async def test_an_interface_keeps_its_addresses_if_the_tag_is_old(arm: ArmClient) -> None:
    await make(arm, VNET)
    await arm.put(f"{NICS}/n", interface_body())
    before = await arm.get(f"{NICS}/n")
    body = interface_body(privateIPAddress="10.9.0.77", privateIPAllocationMethod="Static")
    assert (await send(arm, "PUT", f"{NICS}/n", body, Match='W/"old"'))[0] == 412
    assert await arm.get(f"{NICS}/n") == before
    await arm.put(f"{NICS}/m", body)


async def test_a_set_scaled_by_the_operator_has_another_tag(arm: ArmClient) -> None:
    tag = await make(arm, f"{SETS}/s")
    await arm.rig.post("/scopes/scale-set%2Fs%2F0/scale", {"capacity": 3}, 202)
    body = {"sku": {"capacity": 2}}
    assert (await send(arm, "PATCH", f"{SETS}/s", body, Match=tag))[0] == 412


async def test_what_the_fleet_declared_has_a_tag(arm: ArmClient) -> None:
    for path in (f"{VMS}/db", f"{SETS}/workers", f"{AVAILABILITY}/web"):
        tag = await tag_of(arm, path)
        assert (await send(arm, "PATCH", path, {"tags": {"a": "b"}}, Match='"x"'))[0] == 412
        assert (await send(arm, "PATCH", path, {"tags": {"a": "b"}}, Match=tag))[0] == 200


@pytest.mark.parametrize("path", PATHS)
async def test_of_many_with_the_same_tag_one_wins(arm: ArmClient, path: str) -> None:
    tag = await make(arm, path)
    many = (send(arm, "PATCH", path, {"tags": {"by": str(n)}}, Match=tag) for n in range(8))
    answers = await asyncio.gather(*many)
    winners = [body["tags"] for status, body in answers if status == 200]
    assert len(winners) == 1
    assert {status for status, _ in answers} <= {200, 409, 412}
    assert (await arm.get(path))["tags"] == winners[0]


async def test_a_machine_is_not_changed_by_those_who_lost(arm: ArmClient) -> None:
    tag = await make(arm, f"{VMS}/v")
    many = (send(arm, "PATCH", f"{VMS}/v", {"tags": {"by": str(n)}}, Match=tag) for n in range(8))
    winners = [body["tags"] for status, body in await asyncio.gather(*many) if status == 200]
    instance = await arm.rig.get("/instances/v")
    assert [instance["tags"]] == winners


async def test_of_many_who_create_one_does(arm: ArmClient) -> None:
    for path, body in BODIES.items():
        many = (send(arm, "PUT", path, body, None_Match="*") for _ in range(6))
        statuses = [status for status, _ in await asyncio.gather(*many)]
        assert len([each for each in statuses if each in (200, 201)]) == 1, path
        assert set(statuses) <= {200, 201, 409, 412}, path


async def test_a_group_deleted_under_a_condition_takes_all_with_it(arm: ArmClient) -> None:
    await make(arm, f"{S}/resourcegroups/g")
    vms = f"{S}/resourceGroups/g/providers/Microsoft.Compute/virtualMachines"
    await arm.put(f"{vms}/v", vm_body())
    tag = await tag_of(arm, f"{S}/resourcegroups/g")
    assert (await send(arm, "DELETE", f"{S}/resourcegroups/g", Match=tag))[0] == 202
    await arm.advance()
    await arm.get(f"{S}/resourcegroups/g", 404)


DEPLOYMENT = NETWORK.replace("Microsoft.Network", "Microsoft.Resources/deployments/d")
ADDRESS = f"{NETWORK}/publicIPAddresses/p"


def deploying(**tags: str) -> dict[str, Any]:
    resource = {"type": "Microsoft.Network/publicIPAddresses", "apiVersion": "2024-05-01",
                "name": "p", "location": "local", "tags": tags}  # fmt: skip
    template = {"$schema": "x", "contentVersion": "1.0.0.0", "resources": [resource]}
    return {"properties": {"mode": "Incremental", "template": template}}


async def test_a_deployment_has_a_tag_which_is_not_that_of_its_resources(arm: ArmClient) -> None:
    await arm.put(ADDRESS, {"location": "local"})
    assert (await send(arm, "PUT", DEPLOYMENT, deploying(a="1"), Match='"x"'))[0] == 412
    assert (await send(arm, "PUT", DEPLOYMENT, deploying(a="2"), None_Match="*"))[0] == 201
    assert (await send(arm, "PUT", DEPLOYMENT, deploying(a="3"), None_Match="*"))[0] == 412
    assert (await arm.get(ADDRESS))["tags"] == {"a": "2"}
    tag = await tag_of(arm, DEPLOYMENT)
    assert (await send(arm, "PUT", DEPLOYMENT, deploying(a="4"), Match=tag))[0] == 200
    assert (await send(arm, "DELETE", DEPLOYMENT, Match=tag))[0] == 412
    assert (await send(arm, "DELETE", DEPLOYMENT, Match=await tag_of(arm, DEPLOYMENT)))[0] == 204


async def test_of_many_deployments_of_a_new_name_one_is_made(arm: ArmClient) -> None:
    many = (send(arm, "PUT", DEPLOYMENT, deploying(by=str(n)), None_Match="*") for n in range(6))
    statuses = [status for status, _ in await asyncio.gather(*many)]
    assert statuses.count(201) == 1
    assert set(statuses) == {201, 412}
    winner = statuses.index(201)
    assert (await arm.get(ADDRESS))["tags"] == {"by": str(winner)}


STORED: dict[str, Any] = {
    f"{GROUP}/providers/Microsoft.Authorization/locks/k": {"properties": {"level": "CanNotDelete"}},
    f"{GROUP}/providers/Microsoft.Insights/autoscaleSettings/a": {
        "location": "local",
        "properties": {
            "targetResourceUri": f"{SETS}/workers",
            "profiles": [
                {"name": "p", "capacity": {"minimum": "1", "maximum": "3", "default": "1"}}
            ],
        },
    },
    f"{GROUP}/providers/Microsoft.Maintenance/maintenanceConfigurations/m": {
        "location": "local",
        "properties": {"maintenanceScope": "Host"},
    },
}


@pytest.mark.parametrize("path", STORED)
async def test_what_is_only_stored_has_a_tag_too(arm: ArmClient, path: str) -> None:
    body = STORED[path]
    assert (await send(arm, "PUT", path, body, Match="*"))[0] == 412
    many = [send(arm, "PUT", path, body, None_Match="*") for _ in range(6)]
    statuses = [status for status, _ in await asyncio.gather(*many)]
    assert (statuses.count(201), statuses.count(412)) == (1, 5)
    tag = await tag_of(arm, path)
    statuses = [
        status
        for status, _ in await asyncio.gather(
            *[send(arm, "PUT", path, body, Match=tag) for _ in range(6)]
        )
    ]
    assert (statuses.count(200), statuses.count(412)) == (1, 5)
    assert (await send(arm, "DELETE", path, Match=tag))[0] == 412
    assert (await send(arm, "DELETE", path, Match=await tag_of(arm, path)))[0] == 200


def change_after_the_first(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, change: Any
) -> None:
    """Makes the first answer of this reader old before it arrives."""
    find = getattr(module, name)
    is_first = True

    async def found(*given: Any) -> Any:
        nonlocal is_first
        answer = await find(*given)
        if is_first:
            is_first = False
            await change()
        return answer

    monkeypatch.setattr(module, name, found)


@pytest.mark.parametrize(
    ("method", "body"), [("PATCH", {"sku": {"capacity": 1}}), ("DELETE", None)]
)
async def test_a_set_that_is_scaled_after_the_check_is_not_changed(
    arm: ArmClient, monkeypatch: pytest.MonkeyPatch, method: str, body: Any
) -> None:
    async def scale() -> None:
        await arm.rig.post("/scopes/scale-set%2Fs%2F0/scale", {"capacity": 3}, 202)

    tag = await make(arm, f"{SETS}/s")
    change_after_the_first(monkeypatch, set_handlers, "find_scale_set", scale)
    assert (await send(arm, method, f"{SETS}/s", body, Match=tag))[0] == 412
    assert (await arm.get(f"{SETS}/s"))["sku"]["capacity"] == 3


@pytest.mark.parametrize(("method", "body"), [("PATCH", {"tags": {"lost": "1"}}), ("DELETE", None)])
async def test_a_vm_that_a_file_changes_after_the_check_is_not_changed(
    arm: ArmClient, monkeypatch: pytest.MonkeyPatch, method: str, body: Any
) -> None:
    file = {"vm": [{"name": "db", "tags": {"file": "1"}}]}

    async def apply() -> None:
        await arm.rig.post("/fleet", file)

    tag = await tag_of(arm, f"{VMS}/db")
    change_after_the_first(monkeypatch, vm_handlers, "find_virtual_machine", apply)
    assert (await send(arm, method, f"{VMS}/db", body, Match=tag))[0] == 412
    assert (await arm.get(f"{VMS}/db"))["tags"] == {"file": "1"}


async def test_a_change_after_the_check_that_is_none_of_the_resource_matters_not(
    arm: ArmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instances of an availability set share a scope, but each has a tag of its own."""

    async def change() -> None:
        await arm.ask("PATCH", f"{VMS}/web-1", {"tags": {"other": "1"}})

    tag = await tag_of(arm, f"{VMS}/web-0")
    change_after_the_first(monkeypatch, vm_handlers, "find_virtual_machine", change)
    assert (await send(arm, "PATCH", f"{VMS}/web-0", {"tags": {"a": "b"}}, Match=tag))[0] == 200


@pytest.mark.parametrize("mode", ["Uniform", "Flexible"])
async def test_of_many_who_protect_an_instance_with_the_same_tag_one_does(
    arm: ArmClient, mode: str
) -> None:
    await arm.put(f"{SETS}/s", body_of(mode=mode))
    row = (await arm.get(f"{SETS}/s/virtualMachines"))["value"][0]
    assert (await send(arm, "PUT", row["id"], {"tags": {}}, Match='"x"'))[0] == 412
    many = [
        send(arm, "PUT", row["id"], {"tags": {"by": str(n)}}, Match=row["etag"]) for n in range(6)
    ]
    answers = await asyncio.gather(*many)
    winners = [body["tags"] for status, body in answers if status == 200]
    assert len(winners) == 1
    assert {status for status, _ in answers} <= {200, 409, 412}
    assert (await arm.get(row["id"]))["tags"] == winners[0]


async def test_an_instance_that_changes_after_the_check_is_not_deleted(
    arm: ArmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await arm.put(f"{SETS}/s", body_of())
    path = f"{SETS}/s/virtualMachines/0"
    tag = await tag_of(arm, path)

    async def protect() -> None:
        await arm.ask("PUT", path, {"tags": {"kept": "1"}}, version="2024-11-01")

    change_after_the_first(monkeypatch, instances, "get_scale_set", protect)
    assert (await send(arm, "DELETE", path, Match=tag))[0] == 412
    await arm.advance()
    assert (await arm.get(path))["tags"] == {"kept": "1"}


@pytest.mark.parametrize("mode", ["Uniform", "Flexible"])
async def test_an_instance_of_a_set_has_a_tag(arm: ArmClient, mode: str) -> None:
    await arm.put(f"{SETS}/s", body_of(mode=mode))
    rows = (await arm.get(f"{SETS}/s/virtualMachines"))["value"]
    path = rows[0]["id"]
    assert await tag_of(arm, path) == rows[0]["etag"]
    shown = await arm.get(path, expand="instanceView")
    assert shown["etag"] == rows[0]["etag"]
    assert (await send(arm, "DELETE", path, Match='"x"'))[0] == 412
    assert (await send(arm, "DELETE", path, Match=rows[0]["etag"]))[0] == 202
