"""Locks keep what they are put on, and say so in Azure's words."""

import pytest

from tests.azure_api.arm_client import COMPUTE, GROUP, S
from tests.azure_api.scale_set_client import SETS, ScaleSetClient

LOCK = "providers/Microsoft.Authorization/locks"
WORKERS = f"{SETS}/workers"


async def lock(
    arm: ScaleSetClient, scope: str, level: str = "CanNotDelete", name: str = "k"
) -> str:
    path = f"{scope}/{LOCK}/{name}"
    await arm.put(path, {"properties": {"level": level, "notes": "keep it"}})
    return path


async def locked(arm: ScaleSetClient, method: str, path: str, body: object = None) -> str:
    code, message = await arm.refused(method, path, body, 409)
    assert code == "ScopeLocked"
    return message


async def test_a_lock_is_kept_shown_listed_and_deleted(arm: ScaleSetClient) -> None:
    path = await lock(arm, WORKERS)
    found = await arm.get(path)
    assert found == {
        "id": path,
        "name": "k",
        "type": "Microsoft.Authorization/locks",
        "properties": {"level": "CanNotDelete", "notes": "keep it"},
    }
    for scope in (S, GROUP, WORKERS):
        assert (await arm.get(f"{scope}/{LOCK}"))["value"] == [found]
    assert (await arm.get(f"{SETS}/other/{LOCK}"))["value"] == []
    again = await arm.put(path, {"properties": {"level": "readonly"}}, 200)
    assert again["properties"] == {"level": "ReadOnly"}
    await arm.ask("DELETE", path)
    await arm.ask("DELETE", path, status=204)
    await arm.get(path, 404)
    rows = (await arm.get(f"{GROUP}/resources"))["value"]
    assert not [each for each in rows if "lock" in each["type"]]


@pytest.mark.parametrize("version", ["2016-09-01", "2017-04-01", "2020-05-01"])
async def test_a_lock_has_its_own_api_versions(arm: ScaleSetClient, version: str) -> None:
    body = {"properties": {"level": "CanNotDelete"}}
    await arm.put(f"{WORKERS}/{LOCK}/k", body, version=version)


async def test_inherited_locks_are_listed_at_a_scope(arm: ScaleSetClient) -> None:
    await lock(arm, GROUP, name="outer")
    await lock(arm, WORKERS, name="inner")
    found = await arm.get(f"{WORKERS}/{LOCK}", filter="atScope()")
    assert [each["name"] for each in found["value"]] == ["outer", "inner"]
    assert len((await arm.get(f"{WORKERS}/{LOCK}"))["value"]) == 1


@pytest.mark.parametrize("scope", [S, GROUP, WORKERS])
@pytest.mark.parametrize("level", ["CanNotDelete", "ReadOnly"])
async def test_a_lock_keeps_the_set_its_instances_and_its_group(
    arm: ScaleSetClient, scope: str, level: str
) -> None:
    path = await lock(arm, scope, level)
    assert await locked(arm, "DELETE", WORKERS) == (
        f"The scope '{WORKERS}' cannot perform delete operation because following scope(s) are "
        f"locked: '{scope}'. Please remove the lock and try again."
    )
    await locked(arm, "DELETE", f"{WORKERS}/virtualMachines/0")
    await locked(arm, "POST", f"{WORKERS}/delete", {"instanceIds": ["0"]})
    await locked(arm, "DELETE", GROUP)
    assert await arm.ids("workers") == ["0", "1", "2"]
    await arm.ask("DELETE", path)
    await arm.ask("DELETE", WORKERS, status=202)


async def test_cannot_delete_lets_changes_through_and_read_only_does_not(
    arm: ScaleSetClient,
) -> None:
    path = await lock(arm, WORKERS)
    await arm.ask("PATCH", WORKERS, {"sku": {"capacity": 2}})
    await arm.ask("POST", f"{WORKERS}/restart", {"instanceIds": ["0"]}, 202)
    await arm.put(path, {"properties": {"level": "ReadOnly"}}, 200)
    for method, what, body in (
        ("PATCH", WORKERS, {"sku": {"capacity": 1}}),
        ("PUT", WORKERS, {"location": "local", "sku": {"capacity": 1}}),
        ("POST", f"{WORKERS}/restart", {"instanceIds": ["0"]}),
        ("POST", f"{WORKERS}/virtualMachines/0/restart", None),
    ):
        assert "cannot perform write operation" in await locked(arm, method, what, body)
    await arm.get(WORKERS)
    await arm.ask("DELETE", f"{COMPUTE}/virtualMachines/db", status=202)


async def test_an_instance_can_be_locked_alone(arm: ScaleSetClient) -> None:
    one = f"{WORKERS}/virtualMachines/1"
    await lock(arm, one)
    for method, what, body in (
        ("DELETE", one, None),
        ("POST", f"{WORKERS}/delete", {"instanceIds": ["0", "1"]}),
        ("POST", f"{WORKERS}/delete", {"instanceIds": ["*"]}),
        ("DELETE", WORKERS, None),
    ):
        assert f"locked: '{one}'" in await locked(arm, method, what, body)
    await arm.ask("POST", f"{WORKERS}/delete", {"instanceIds": ["0"]}, 202)


async def test_a_locked_vm_of_a_flexible_set_is_kept(arm: ScaleSetClient) -> None:
    await arm.make("f", capacity=1, mode="Flexible")
    (name,) = await arm.ids("f")
    vm = f"{COMPUTE}/virtualMachines/{name}"
    await lock(arm, vm)
    for method, what, body in (
        ("DELETE", vm, None),
        ("POST", f"{SETS}/f/delete", {"instanceIds": [name]}),
        ("DELETE", f"{SETS}/f/virtualMachines/{name}", None),
        ("DELETE", f"{SETS}/f", None),
    ):
        assert f"locked: '{vm}'" in await locked(arm, method, what, body)
    assert await arm.ids("f") == [name]


async def test_an_instance_of_a_flexible_set_can_be_locked_as_a_part_of_the_set(
    arm: ScaleSetClient,
) -> None:
    await arm.make("f", capacity=1, mode="Flexible")
    (name,) = await arm.ids("f")
    one = f"{SETS}/f/virtualMachines/{name}"
    await lock(arm, one)
    for chosen in (name, "*"):
        what = await locked(arm, "POST", f"{SETS}/f/delete", {"instanceIds": [chosen]})
        assert f"locked: '{one}'" in what
    assert await arm.ids("f") == [name]


async def test_bad_locks_are_refused(arm: ScaleSetClient) -> None:
    for body in (None, {}, {"properties": {"level": "Never"}}, {"properties": {"level": 1}}):
        await arm.refused("PUT", f"{GROUP}/{LOCK}/k", body)
    long = {"properties": {"level": "ReadOnly", "notes": "x" * 513}}
    await arm.refused("PUT", f"{GROUP}/{LOCK}/k", long)
    good = {"properties": {"level": "ReadOnly"}}
    await arm.refused("PUT", f"{SETS}/none/{LOCK}/k", good, 404)
    await arm.refused("PUT", f"{S}/resourceGroups/none/{LOCK}/k", good, 404)


async def test_a_new_resource_inherits_no_lock_of_its_namesake(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=1)
    path = await lock(arm, f"{SETS}/s")
    await arm.rig.delete("/scopes/s")
    await arm.advance()
    await arm.make("s", capacity=1)
    await arm.get(path, 404)
    body = {"location": "local", "properties": {"hardwareProfile": {"vmSize": "Standard_B1s"}}}
    vm = f"{COMPUTE}/virtualMachines/fresh"
    await arm.put(vm, body)
    path = await lock(arm, vm)
    await arm.rig.delete("/instances/fresh")
    await arm.advance()
    await arm.put(vm, body)
    await arm.get(path, 404)
