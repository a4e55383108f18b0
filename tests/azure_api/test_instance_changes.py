"""No word of ARM changes which driver acts, or on which machine."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest_asyncio

from tests.azure_api.arm_client import COMPUTE, VERSION, ArmClient, asking
from tests.operator_api.test_auth import bearer, token

COMMAND = {"type": "command", "run": "/bin/true"}
SIZE = {"hardwareProfile": {"vmSize": "Standard_D2s_v5"}}
VM = {"location": "local", "properties": SIZE}
SET = {
    "location": "local",
    "sku": {"name": "Standard_D2s_v3", "capacity": 101},
    "properties": {"orchestrationMode": "Uniform", "upgradePolicy": {"mode": "Manual"}},
}


@pytest_asyncio.fixture
async def arm() -> AsyncIterator[ArmClient]:
    async with asking() as found:
        yield found


async def asked(arm: ArmClient, method: str, path: str, body: Any = None) -> httpx.Response:
    """As an operator."""
    for each in (await arm.rig.get("/tokens"))["tokens"]:
        await arm.rig.delete(f"/tokens/{each['id']}")
    headers = bearer(await token(arm.rig, "operator"))
    return await arm.http.request(
        method,
        f"{COMPUTE}/{path}",
        json=body,
        params={"api-version": VERSION},
        headers=headers,
    )


async def driver(arm: ArmClient, scope: str) -> str:
    return str((await arm.rig.get(f"/scopes/{scope}"))["driver"])


async def test_a_vm_that_is_deleted_and_made_again_has_the_driver_it_had(arm: ArmClient) -> None:
    await arm.rig.post("/fleet", {"vm": [{"name": "v1", "handle": "vm-1", "driver": COMMAND}]})
    id = (await arm.rig.get("/scopes/v1"))["id"]
    await arm.rig.delete("/scopes/v1")
    assert (await asked(arm, "PUT", "virtualMachines/v1", VM)).status_code == 201
    roster = (await arm.rig.node.store.read(id)).roster
    assert (roster.driver, roster.live[0].handle) == ("command", "vm-1")


async def test_what_is_deleted_and_made_again_has_the_hooks_it_had(arm: ArmClient) -> None:
    hooks = {"before": [{"run": ["/bin/true"]}]}
    fleet = {"vm": [{"name": "v1"}], "scale_set": [{"name": "s", "capacity": 1}], "hooks": hooks}
    await arm.rig.post("/fleet", fleet)
    for scope, path, body in (
        ("v1", "virtualMachines/v1", VM),
        ("s", "virtualMachineScaleSets/s", SET),
    ):
        await arm.rig.delete(f"/scopes/{scope}")
        assert (await asked(arm, "PUT", path, body)).status_code == 201
    for scope in ("v1", "s/0", "s/1"):
        shown = (await arm.rig.get(f"/scopes/{scope}"))["hooks"]
        assert [each["program"] for each in shown["before"]] == ["/bin/true"]


async def test_a_scale_set_that_is_made_again_has_the_driver_it_had(arm: ArmClient) -> None:
    await arm.rig.post("/fleet", {"scale_set": [{"name": "s", "capacity": 1, "driver": COMMAND}]})
    await arm.rig.delete("/scopes/s")
    assert (await asked(arm, "PUT", "virtualMachineScaleSets/s", SET)).status_code == 201
    assert await driver(arm, "s/0") == "command"
    assert await driver(arm, "s/1") == "command"


async def test_an_operator_adds_no_machine_of_another_scope_to_a_set(arm: ArmClient) -> None:
    group = {"name": "av", "driver": COMMAND, "instances": ["av-0"]}
    await arm.rig.post("/fleet", {"availability_set": [group]})
    inside = {"availabilitySet": {"id": f"{COMPUTE}/availabilitySets/av"}}
    body = {**VM, "properties": {**SIZE, **inside}}
    answer = await asked(arm, "PUT", "virtualMachines/workers_1", body)
    assert answer.status_code == 403, answer.text
    assert "machine of" in answer.text
    assert (await asked(arm, "PUT", "virtualMachines/av-1", body)).status_code == 201


async def test_a_member_that_comes_back_has_the_handle_it_had(arm: ArmClient) -> None:
    members = ["av-0", {"name": "av-1", "handle": "vm-7"}]
    await arm.rig.post("/fleet", {"availability_set": [{"name": "av", "instances": members}]})
    id = (await arm.rig.get("/scopes/av"))["id"]
    assert (await asked(arm, "DELETE", "virtualMachines/av-1")).status_code == 202
    await arm.rig.clock.advance(60_000)
    inside = {"availabilitySet": {"id": f"{COMPUTE}/availabilitySets/av"}}
    body = {**VM, "properties": {**SIZE, **inside}}
    assert (await asked(arm, "PUT", "virtualMachines/av-1", body)).status_code == 201
    roster = (await arm.rig.node.store.read(id)).roster
    assert [each.handle for each in roster.live] == ["", "vm-7"]


async def test_an_operator_adds_no_machine_of_another_scope_in_a_new_placement_group(
    arm: ArmClient,
) -> None:
    full = {"name": "flex", "capacity": 100, "orchestration": "flexible", "driver": COMMAND}
    await arm.rig.post("/fleet", {"scale_set": [full]})
    inside = {"virtualMachineScaleSet": {"id": f"{COMPUTE}/virtualMachineScaleSets/flex"}}
    body = {**VM, "properties": {**SIZE, **inside}}
    answer = await asked(arm, "PUT", "virtualMachines/workers_1", body)
    assert answer.status_code == 403, answer.text
    assert (await asked(arm, "PUT", "virtualMachines/own", body)).status_code == 201


async def test_an_empty_availability_set_that_was_deleted_may_be_created_again(
    arm: ArmClient,
) -> None:
    assert (
        await asked(arm, "PUT", "availabilitySets/av", {"location": "local"})
    ).status_code == 200
    assert (await asked(arm, "DELETE", "availabilitySets/av")).status_code == 200
    answer = await arm.rig.api.post(
        "/fleet", json={"availability_set": [{"name": "av"}]}, params={"create": "true"}
    )
    assert answer.status_code == 200, answer.text


async def test_a_set_that_was_deleted_through_arm_may_be_created_again(arm: ArmClient) -> None:
    await arm.rig.post("/fleet", {"scale_set": [{"name": "s", "capacity": 1}]})
    assert (await asked(arm, "DELETE", "virtualMachineScaleSets/s")).status_code == 202
    await arm.rig.clock.advance(60_000)
    assert (await arm.rig.get("/fleet", search="/s/"))["scopes"] == []
    answer = await arm.rig.api.post(
        "/fleet", json={"scale_set": [{"name": "s", "capacity": 1}]}, params={"create": "true"}
    )
    assert answer.status_code == 200, answer.text
