"""A request that was held up until somebody else had its lock changes nothing more."""

import asyncio
from typing import Any

import pytest

from fairwarning.azure_api.operations import KIND as OPERATION
from fairwarning.azure_api.resource_store import KIND as SHELF
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from fairwarning.operator_api.locks import KIND as HELD
from tests.azure_api.arm_client import COMPUTE
from tests.azure_api.scale_set_client import SETS, ScaleSetClient, body_of, telling
from tests.operator_api.rig import ME, Block

MACHINE = {"location": "local", "properties": {"hardwareProfile": {"vmSize": "Standard_D2s_v5"}}}
REQUESTS = [
    ("PUT", f"{SETS}/new", body_of(), "create"),
    ("PUT", f"{SETS}/s", telling("PT9M"), "transact"),
    ("PATCH", f"{SETS}/s", telling("PT9M"), "transact"),
    ("PATCH", f"{SETS}/s", {"sku": {"capacity": 3}}, "transact"),
    ("DELETE", f"{SETS}/s", None, "transact"),
    ("PUT", f"{COMPUTE}/virtualMachines/new", MACHINE, "create"),
    ("PATCH", f"{SETS}/s", {"tags": {"owner": "ana"}}, "read"),
]


@pytest.mark.parametrize(("method", "path", "body", "call"), REQUESTS)
async def test_who_has_lost_the_lock_changes_nothing_more(
    arm: ScaleSetClient,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: Any,
    call: str,
) -> None:
    await arm.make("s")
    before = await everything(arm)
    store = arm.rig.node.store
    block = Block(monkeypatch, store, call)
    late = asyncio.create_task(arm.ask(method, path, body, 409))
    await block.reached.wait()
    was_held = await store.drop(HELD, f"arm{path.lower()}", by=ME)
    block.open()
    error = (await late).json()["error"]
    assert error["code"] == "Conflict"
    assert "somebody else has taken over" in error["message"]
    assert was_held
    assert await everything(arm) == before


async def everything(arm: ScaleSetClient) -> list[Any]:
    store = arm.rig.node.store
    kinds = [await store.records(kind, limit=99) for kind in (SHELF, OPERATION)]
    return [await store.scopes(limit=99), *kinds]


async def test_who_has_lost_the_lock_of_a_set_changes_no_member(
    arm: ScaleSetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await everything(arm)
    store = arm.rig.node.store
    block = Block(monkeypatch, store, "transact")
    path = f"{COMPUTE}/virtualMachines/web-0"
    late = asyncio.create_task(arm.ask("PATCH", path, {"tags": {"owner": "ana"}}, 409))
    await block.reached.wait()
    lock = f"{DEFAULT_SUBSCRIPTION}/default/availability-set/web"
    was_held = await store.drop(HELD, lock, by=ME)
    block.open()
    error = (await late).json()["error"]
    assert error["code"] == "Conflict"
    assert "somebody else has taken over" in error["message"]
    assert was_held
    assert await everything(arm) == before
