"""Mode Complete and its preview: what goes is shown first, and goes with its notice."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fairwarning.azure_api.deployments.what_if import deltas_of
from tests.azure_api.arm_client import NETWORK, S, running_client
from tests.azure_api.deployments.test_handlers import (
    DEPLOYMENTS,
    DeploymentClient,
    nested,
    network,
    resource,
    template,
)
from tests.azure_api.scale_set_client import body_of, told

SETS = "Microsoft.Compute/virtualMachineScaleSets"
IDLE = f"{S}/resourceGroups/idle"
IN_IDLE = f"{IDLE}/providers/Microsoft.Resources/deployments"


@pytest_asyncio.fixture
async def arm() -> AsyncIterator[DeploymentClient]:
    async with running_client(DeploymentClient) as found:
        await found.put_group("idle", "local")
        yield found


def scale_set(name: str = "s", capacity: int = 2, **profile: Any) -> dict[str, Any]:
    body = body_of(capacity, **profile)
    return {**resource(SETS, name), **body, "apiVersion": "2024-11-01"}


async def preview(arm: DeploymentClient, *resources: Any, **more: Any) -> dict[str, Any]:
    answer = await arm.ask("POST", f"{IN_IDLE}/d/whatIf", template(*resources, **more))
    assert answer.json()["status"] == "Succeeded", answer.text
    changes = answer.json()["properties"]["changes"]
    return {each["resourceId"].rpartition("/")[2]: each for each in changes}


async def deploy(arm: DeploymentClient, *resources: Any, name: str = "d", **more: Any) -> str:
    body = template(*resources, **more)
    answer = await arm.answer("PUT", f"{IN_IDLE}/{name}", body)
    assert answer.status_code in (200, 201), answer.text
    return str(answer.headers["Azure-AsyncOperation"])


async def names(arm: DeploymentClient) -> set[str]:
    return {each["name"] for each in (await arm.get(f"{IDLE}/resources"))["value"]}


async def test_a_preview_tells_creation_change_and_what_stays(arm: DeploymentClient) -> None:
    found = await preview(arm, network(), scale_set())
    assert {name: each["changeType"] for name, each in found.items()} == {
        "net": "Create", "s": "Create",
    }  # fmt: skip
    assert found["s"]["after"]["sku"]["capacity"] == 2
    assert found["s"]["before"] is None
    assert await names(arm) == set()
    await deploy(arm, network(), scale_set())
    again = await preview(arm, network(), scale_set())
    assert {each["changeType"] for each in again.values()} == {"NoChange"}
    changed = await preview(arm, scale_set(capacity=1))
    assert {name: each["changeType"] for name, each in changed.items()} == {
        "net": "Ignore", "s": "Modify",
    }  # fmt: skip
    assert changed["s"]["delta"] == [
        {
            "path": "sku.capacity",
            "propertyChangeType": "Modify",
            "before": 2,
            "after": 1,
            "children": None,
        }
    ]
    assert await arm.get(f"{IDLE}/providers/{SETS}/s") == changed["s"]["before"]


async def test_lists_secrets_and_case_in_a_preview(arm: DeploymentClient) -> None:
    await deploy(arm, network(), scale_set())
    more = network(location="Local")
    more["properties"]["addressSpace"] = {"addressPrefixes": ["10.0.0.0/16", "10.1.0.0/16"]}
    found = await preview(arm, more, scale_set(osProfile={"adminPassword": "hunter2"}))
    (delta,) = found["net"]["delta"]
    assert (delta["path"], delta["propertyChangeType"]) == (
        "properties.addressSpace.addressPrefixes",
        "Array",
    )
    assert [(each["path"], each["after"]) for each in delta["children"]] == [("1", "10.1.0.0/16")]
    assert "hunter2" not in str(found)


async def test_a_reference_to_what_is_not_there_yet_is_no_mistake(arm: DeploymentClient) -> None:
    later = network("later", tags={"x": "[reference('net').provisioningState]"})
    found = await preview(arm, network(), later)
    assert {name: each["changeType"] for name, each in found.items()} == {
        "net": "Create", "later": "Create",
    }  # fmt: skip


async def test_a_short_preview_has_ids_only(arm: DeploymentClient) -> None:
    await deploy(arm, network())
    body = template(network(), scale_set())
    body["properties"]["whatIfSettings"] = {"resultFormat": "ResourceIdOnly"}
    answer = await arm.ask("POST", f"{IN_IDLE}/d/whatIf", body)
    assert answer.json()["properties"]["changes"] == [
        {"resourceId": f"{IDLE}/providers/{SETS}/s", "changeType": "Create"},
        {"resourceId": f"{IDLE}/providers/Microsoft.Network/virtualNetworks/net",
         "changeType": "Deploy"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "word"),
    [
        (DEPLOYMENTS, "frob"),
        (f"{S}/providers/Microsoft.Resources/deployments", "az deployment group"),
    ],
)
async def test_a_preview_that_fails_says_so_in_its_result(
    arm: DeploymentClient, place: str, word: str
) -> None:
    body = template(variables={"a": "[frob()]"})
    failed = (await arm.ask("POST", f"{place}/d/whatIf", body)).json()
    assert failed["status"] == "Failed"
    assert word in failed["error"]["message"]


async def test_mode_complete_shows_and_deletes_what_the_template_leaves_out(
    arm: DeploymentClient,
) -> None:
    await deploy(arm, network(), network("other"), scale_set(**told()), scale_set("kept"))
    await arm.rig.activate("s_0")
    found = await preview(arm, network(), scale_set("kept"), mode="Complete")
    assert {name: each["changeType"] for name, each in found.items()} == {
        "net": "NoChange", "kept": "NoChange", "other": "Delete", "s": "Delete",
    }  # fmt: skip
    assert found["s"]["before"]["sku"]["capacity"] == 2
    waiting = await deploy(arm, network(), scale_set("kept"), mode="Complete", name="whole")
    assert await arm.status(waiting) == "Running"
    events = (await arm.rig.get("/events", scope="s"))["events"]
    assert {(each["type"], each["phase"]) for each in events} == {("Terminate", "scheduled")}
    await arm.advance("6m")
    assert await arm.status(waiting) == "Succeeded"
    assert await names(arm) == {"net", "kept"}
    shown = (await arm.get(f"{IN_IDLE}/whole"))["properties"]
    assert shown["mode"] == "Complete"
    assert len(shown["outputResources"]) == 2
    steps = (await arm.get(f"{IN_IDLE}/whole/operations"))["value"]
    verbs = [each["properties"]["provisioningOperation"] for each in steps]
    assert verbs == ["Create", "Create", "Delete", "Delete"]


async def test_what_instances_that_leave_still_use_goes_after_them(arm: DeploymentClient) -> None:
    subnet = f"{IDLE}/providers/Microsoft.Network/virtualNetworks/net/subnets/front"
    address = {"name": "ip", "properties": {"subnet": {"id": subnet}}}
    nic = resource(
        "Microsoft.Network/networkInterfaces", "nic", properties={"ipConfigurations": [address]}
    )
    use = {"networkProfile": {"networkInterfaces": [{"id": f"{IDLE}/providers/{nic['type']}/nic"}]}}
    vm = resource(
        "Microsoft.Compute/virtualMachines", "vm", apiVersion="2024-07-01",
        properties={"hardwareProfile": {"vmSize": "Standard_D2s_v5"}, **use},
    )  # fmt: skip
    parts = [network(), {**nic, "dependsOn": ["net"]}, {**vm, "dependsOn": ["nic"]}]
    made = await deploy(arm, *parts)
    assert await arm.status(made) == "Succeeded"
    waiting = await deploy(arm, mode="Complete", name="whole")
    assert await arm.status(waiting) == "Running"
    assert "nic" in await names(arm)
    await arm.advance()
    assert await arm.status(waiting) == "Succeeded"
    assert await names(arm) == set()


async def test_what_cannot_be_deleted_in_the_end_makes_the_deployment_fail(
    arm: DeploymentClient,
) -> None:
    await deploy(arm, network())
    subnet = f"{IDLE}/providers/Microsoft.Network/virtualNetworks/net/subnets/front"
    address = {"name": "ip", "properties": {"subnet": {"id": subnet}}}
    nic = resource("x/y", "nic", properties={"ipConfigurations": [address]})
    del nic["type"], nic["name"], nic["apiVersion"]
    await arm.put(f"{NETWORK}/networkInterfaces/nic", nic)
    failed = await arm.progress(await deploy(arm, mode="Complete", name="whole"))
    assert failed["status"] == "Failed"
    assert "net" in str(failed["error"])
    assert await names(arm) == {"net"}


async def test_a_lock_stops_mode_complete(arm: DeploymentClient) -> None:
    await deploy(arm, network())
    net = f"{IDLE}/providers/Microsoft.Network/virtualNetworks/net"
    lock = f"{net}/providers/Microsoft.Authorization/locks/k"
    await arm.put(lock, {"properties": {"level": "CanNotDelete"}})
    failed = await arm.progress(await deploy(arm, mode="Complete", name="whole"))
    assert failed["error"]["details"][0]["code"] == "ScopeLocked"
    assert await names(arm) == {"net"}


async def test_instances_of_a_flexible_set_that_stays_are_not_deleted(
    arm: DeploymentClient,
) -> None:
    flexible = scale_set("f")
    flexible["properties"]["orchestrationMode"] = "Flexible"
    await deploy(arm, flexible)
    before = await names(arm)
    assert len(before) == 3
    done = await deploy(arm, flexible, mode="Complete", name="whole")
    assert await arm.status(done) == "Succeeded"
    assert await names(arm) == before


async def test_a_nested_deployment_deletes_nothing(arm: DeploymentClient) -> None:
    inner = {"mode": "Complete", "template": {"resources": []}}
    below = resource("Microsoft.Resources/deployments", "inner", properties=inner)
    failed = await arm.progress(await deploy(arm, below))
    assert failed["error"]["details"][0]["code"] == "InvalidDeploymentMode"


async def test_a_preview_shows_what_is_in_nested_deployments(arm: DeploymentClient) -> None:
    await deploy(arm, network())
    found = await preview(arm, nested("below", network(), network("other")))
    assert {name: each["changeType"] for name, each in found.items()} == {
        "net": "NoChange", "other": "Create",
    }  # fmt: skip


async def test_mode_complete_keeps_what_nested_deployments_create(arm: DeploymentClient) -> None:
    await deploy(arm, network("gone"))
    inner = nested("below", network("kept"))
    done = await deploy(arm, inner, mode="Complete", name="whole")
    assert await arm.status(done) == "Succeeded"
    assert await names(arm) == {"kept"}


def kinds(before: Any, after: Any) -> list[tuple[str, str]]:
    found = deltas_of({"a": before}, {"a": after})
    return [(each["path"], each["propertyChangeType"]) for each in found]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("x", "X", []),
        ("x", "y", [("a", "Modify")]),
        ("x", None, []),
        (None, "x", [("a", "Create")]),
        (None, {}, []),
        (None, [], []),
        (None, 0, [("a", "Create")]),
        ({"b": 1, "c": 2}, {"B": 1}, []),
        ({"b": 1}, {"b": {"c": 1}}, [("a.b", "Modify")]),
        ([1], [1], []),
        ([1], [], [("a", "Array")]),
        ("West Europe", "westeurope", [("a", "Modify")]),
    ],
)
def test_only_what_the_template_writes_is_compared(
    before: Any, after: Any, expected: list[tuple[str, str]]
) -> None:
    assert kinds(before, after) == expected


def test_the_items_of_a_list_are_compared_by_their_place() -> None:
    (found,) = deltas_of({"a": [1, 2, 3]}, {"a": [1, 5]})
    assert [(each["path"], each["propertyChangeType"]) for each in found["children"]] == [
        ("1", "Modify"),
        ("2", "Delete"),
    ]
    (found,) = deltas_of({"a": [1]}, {"a": [1, 5]})
    assert [(each["path"], each["propertyChangeType"]) for each in found["children"]] == [
        ("1", "Create")
    ]
    assert found["children"][0]["after"] == 5


def test_a_location_is_the_same_with_and_without_spaces() -> None:
    assert deltas_of({"location": "West Europe"}, {"location": "westeurope"}) == []
    (found,) = deltas_of({"location": "West Europe"}, {"Location": "eastus"})
    assert (found["before"], found["after"]) == ("West Europe", "eastus")


def test_the_head_of_a_resource_never_changes() -> None:
    assert deltas_of({"id": "/a", "name": "a"}, {"ID": "/b", "Name": "b", "apiVersion": "1"}) == []
