"""VMs in ARM: what az makes is the fleet's, and what the fleet has is ARM's."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairwarning.azure_api.virtual_machines.body import without_secrets
from fairwarning.core.commands import AddInstances
from fairwarning.core.model import Instance, InstanceName, ScopeId
from tests.azure_api.arm_client import COMPUTE, GROUP, S, running_client
from tests.azure_api.vm_client import NICS, SETS, SUBNET, VMS, VmClient, uses, vm_body
from tests.operator_api.rig import ME


@pytest_asyncio.fixture
async def azure() -> AsyncIterator[VmClient]:
    async with running_client(VmClient) as found:
        yield found


async def test_what_arm_made_is_in_every_view(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    body = {**vm_body(networkProfile=uses("nic")), "tags": {"team": "a"}}
    answer = await azure.ask("PUT", f"{VMS}/box", body, 201)
    assert await azure.status(answer.headers["azure-asyncoperation"]) == "Succeeded"
    assert "location" not in answer.headers, "az would take its empty answer for the VM"
    shown = await azure.get(f"{VMS}/box")
    assert shown["id"] == f"{VMS}/box"
    assert shown["type"] == "Microsoft.Compute/virtualMachines"
    assert shown["properties"]["provisioningState"] == "Succeeded"
    assert shown["properties"]["hardwareProfile"] == {"vmSize": "Standard_D2s_v5"}

    instance = await azure.instance("box")
    assert (instance["addresses"], instance["tags"]) == (["10.9.0.4"], {"team": "a"})
    assert (await azure.rig.get("/scopes/vm/box"))["origin"] == "arm"
    member = azure.rig.node.engine.views.by_address("10.9.0.4")
    assert member is not None
    assert member.name == "box"

    metadata = await azure.metadata("box")
    compute = metadata["compute"]
    assert (compute["name"], compute["resourceId"]) == ("box", f"{VMS}/box")
    assert compute["tags"] == "team:a"
    assert compute["vmId"] == shown["properties"]["vmId"]
    (address,) = metadata["network"]["interface"][0]["ipv4"]["ipAddress"]
    assert address["privateIpAddress"] == "10.9.0.4"


async def test_what_the_fleet_declared_is_a_vm(azure: VmClient) -> None:
    shown = await azure.get(f"{VMS}/DB")
    assert (shown["name"], shown["location"]) == ("db", "local")
    disk = shown["properties"]["storageProfile"]["osDisk"]
    assert disk["createOption"], "`az vm update` sends nothing back without it"
    member = (await azure.get(f"{VMS}/web-1"))["properties"]
    assert member["availabilitySet"] == {"id": f"{SETS}/web"}
    assert member["vmId"] == (await azure.metadata("web-1"))["compute"]["vmId"]
    names = [each["name"] for each in (await azure.get(VMS))["value"]]
    assert names == ["db", "web-0", "web-1", "web-2", "web-3"]
    code, message = await azure.refused("GET", f"{VMS}/workers_0", status=404)
    assert code == "ResourceNotFound"
    assert message == (
        "The Resource 'Microsoft.Compute/virtualMachines/workers_0' under resource group "
        "'default' was not found."
    )


async def test_an_instance_view_says_power_and_domains(azure: VmClient) -> None:
    expanded = await azure.get(f"{VMS}/web-1", **{"$expand": "instanceView"})
    view = expanded["properties"]["instanceView"]
    assert view == await azure.get(f"{VMS}/web-1/instanceView")
    assert (view["platformUpdateDomain"], view["platformFaultDomain"]) == (1, 1)
    codes = [each["code"] for each in view["statuses"]]
    assert codes == ["ProvisioningState/succeeded", "PowerState/running"]


async def test_a_whole_vm_that_is_sent_back_changes_nothing(azure: VmClient) -> None:
    """As `az vm update` does it, with all that was derived, and without its image."""
    made = await azure.vm("box", storageProfile={"imageReference": {"offer": "u"}, "dataDisks": []})
    echoed = await azure.get(f"{VMS}/box", **{"$expand": "instanceView"})
    del echoed["properties"]["storageProfile"]["imageReference"]
    echoed["properties"]["userData"] = None
    assert await azure.put(f"{VMS}/box", echoed, 200) == made
    fleet = await azure.get(f"{VMS}/web-0")
    assert (await azure.put(f"{VMS}/web-0", fleet, 200))["properties"]["availabilitySet"]
    assert (await azure.instance("web-0"))["addresses"] == ["127.0.1.10"]


async def test_tags_are_the_instances(azure: VmClient) -> None:
    await azure.put(f"{VMS}/box", {**vm_body(), "tags": {"a": "1", "b": "2"}})
    patched = await azure.patch(f"{VMS}/box", {"tags": {"b": "3"}})
    assert patched["tags"] == {"b": "3"}
    assert (await azure.instance("box"))["tags"] == {"b": "3"}
    assert (await azure.patch(f"{VMS}/box", {"zones": ["1"]}))["tags"] == {"b": "3"}
    await azure.patch(f"{VMS}/web-0", {"tags": {"c": "4"}})
    assert (await azure.metadata("web-0"))["compute"]["tags"] == "c:4"
    assert (await azure.instance("web-0"))["updateDomain"] == 0


async def test_tags_that_somebody_else_set_stay(azure: VmClient) -> None:
    await azure.put(f"{VMS}/box", {**vm_body(), "tags": {"by": "arm"}})
    declared = [{"name": "box", "tags": {"by": "file"}}, {"name": "new", "tags": {"by": "file"}}]
    await azure.rig.post("/fleet", {"vm": declared})
    for name in ("box", "new"):
        patched = await azure.patch(f"{VMS}/{name}", {"zones": ["1"]})
        assert (patched["zones"], patched["tags"]) == (["1"], {"by": "file"})


async def test_tags_that_change_at_once_lose_no_one(tmp_path: Path) -> None:
    """Each is a declaration of the whole set, so one that is stale would undo the others."""
    async with running_client(VmClient, store_url=f"sqlite:///{tmp_path}/fleet.db") as azure:
        await _change_many(azure)


async def _change_many(azure: VmClient) -> None:
    names = [f"web-{n}" for n in range(4)]
    made = [
        azure.put(f"{VMS}/new-{n}", vm_body(availabilitySet={"id": f"{SETS}/web"}))
        for n in range(4)
    ]
    changed = [azure.patch(f"{VMS}/{name}", {"tags": {"of": name}}) for name in names]
    await asyncio.gather(*made, *changed)
    members = (await azure.rig.get("/scopes/web"))["instances"]
    assert len(members) == 8
    assert {each["name"]: each["tags"] for each in members if each["tags"]} == {
        name: {"of": name} for name in names
    }


async def test_a_change_that_was_overtaken_undoes_nothing(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by another node, which waits for no lock of this one."""
    engine = azure.rig.node.engine
    scope_id = ScopeId((await azure.rig.get("/scopes/web"))["id"])
    real, is_first = engine.submit, iter((True,))

    async def submit(*args: Any, **named: Any) -> Any:
        if next(is_first, False):
            added = AddInstances(instances=(Instance(name=InstanceName("web-9")),))
            await real(scope_id, added, by=ME)
        return await real(*args, **named)

    monkeypatch.setattr(engine, "submit", submit)
    code, _ = await azure.refused("PATCH", f"{VMS}/web-0", {"tags": {"a": "b"}}, 409)
    assert code == "Conflict"
    assert (await azure.instance("web-9"))["name"] == "web-9"


async def test_a_name_in_several_spellings_is_one_machine(tmp_path: Path) -> None:
    async with running_client(VmClient, store_url=f"sqlite:///{tmp_path}/fleet.db") as azure:
        query = {"api-version": "2026-04-01"}
        asked = [
            azure.http.put(f"{VMS}/{name}", json=vm_body(), params=query)
            for name in ("box", "BOX", "Box", "bOx")
        ]
        statuses = [each.status_code for each in await asyncio.gather(*asked)]
        assert statuses.count(201) == 1
        assert set(statuses) <= {200, 201, 409}
        names = [each["name"].lower() for each in (await azure.get(VMS))["value"]]
        assert names.count("box") == 1


async def test_a_member_of_an_availability_set_is_placed_in_turn(azure: VmClient) -> None:
    body = {"location": "local", "properties": {"platformUpdateDomainCount": 3}}
    await azure.put(f"{SETS}/mine", body, 200)
    for n in range(4):
        await azure.vm(f"m-{n}", availabilitySet={"id": f"{SETS}/MINE".upper()})
    domains = [(await azure.instance(f"m-{n}"))["updateDomain"] for n in range(4)]
    assert domains == [0, 1, 2, 0]
    shown = (await azure.get(f"{VMS}/m-0"))["properties"]
    assert shown["availabilitySet"] == {"id": f"{SETS}/mine"}


async def test_a_vm_joins_a_flexible_scale_set_only(azure: VmClient) -> None:
    flexible = f"{COMPUTE}/virtualMachineScaleSets/flex"
    body = {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "capacity": 1},
        "properties": {"orchestrationMode": "Flexible", "virtualMachineProfile": {}},
    }
    await azure.put(flexible, body)
    made = await azure.vm("own", virtualMachineScaleSet={"id": flexible})
    assert made["properties"]["virtualMachineScaleSet"] == {"id": flexible}
    assert (await azure.instance("own"))["scope"].endswith("/scale-set/flex/0")
    list_reply = await azure.get(VMS, **{"$filter": f"'virtualMachineScaleSet/id' eq '{flexible}'"})
    names = [each["name"] for each in list_reply["value"]]
    assert "own" in names
    assert len(names) == 2
    uniform = vm_body(virtualMachineScaleSet={"id": f"{COMPUTE}/virtualMachineScaleSets/workers"})
    code, message = await azure.refused("PUT", f"{VMS}/more", uniform)
    assert code == "InvalidParameter"
    assert "uniform" in message


async def test_a_vm_joins_no_scale_set_that_is_being_deleted(azure: VmClient) -> None:
    flexible = f"{COMPUTE}/virtualMachineScaleSets/flex"
    told = {"terminateNotificationProfile": {"notBeforeTimeout": "PT5M", "enable": True}}
    body = {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "capacity": 1},
        "properties": {
            "orchestrationMode": "Flexible",
            "virtualMachineProfile": {"scheduledEventsProfile": told},
        },
    }
    await azure.put(flexible, body)
    (member,) = (await azure.get(f"{flexible}/virtualMachines"))["value"]
    await azure.rig.activate(member["name"])
    await azure.ask("DELETE", flexible, status=202)
    late = vm_body(virtualMachineScaleSet={"id": flexible})
    assert (await azure.refused("PUT", f"{VMS}/late", late, 409))[0] == "Conflict"


async def test_lists_of_the_group_and_of_the_subscription(azure: VmClient) -> None:
    other = f"{S}/resourceGroups/other"
    await azure.put(other, {"location": "local"})
    far = f"{other}/providers/Microsoft.Compute/virtualMachines"
    await azure.put(f"{far}/far", vm_body())
    assert [each["name"] for each in (await azure.get(far))["value"]] == ["far"]
    everywhere = await azure.get(f"{S}/providers/Microsoft.Compute/virtualMachines")
    assert len(everywhere["value"]) == 6
    other_filter: dict[str, Any] = {"$filter": "name eq 'db'"}
    code, _ = await azure.refused("GET", VMS, **other_filter)
    assert code == "InvalidParameter"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"properties": {}}, 400, "LocationRequired"),
        (vm_body(availabilitySet={"id": f"{SETS}/none"}), 404, "ResourceNotFound"),
        (vm_body(availabilitySet={"id": "web"}), 400, "InvalidParameter"),
        (
            vm_body(availabilitySet={"id": f"{SETS}/web".replace("default", "other")}),
            400,
            "InvalidParameter",
        ),
        (
            {**vm_body(availabilitySet={"id": f"{SETS}/web"}), "location": "northeurope"},
            400,
            "InvalidParameter",
        ),
        (vm_body(networkProfile=uses("none")), 400, "InvalidResourceReference"),
        (vm_body(priority="Cheap"), 400, "InvalidParameter"),
        ({**vm_body(), "tags": {"a": 1}}, 400, "InvalidRequestFormat"),
        ({"location": "local", "properties": []}, 400, "InvalidRequestFormat"),
        (
            vm_body(
                availabilitySet={"id": f"{SETS}/web"},
                virtualMachineScaleSet={"id": f"{COMPUTE}/virtualMachineScaleSets/workers"},
            ),
            400,
            "InvalidParameter",
        ),
        (
            vm_body(
                availabilitySet={"id": f"{SETS}/web"},
                scheduledEventsPolicy={"userInitiatedReboot": {"automaticallyApprove": True}},
            ),
            400,
            "InvalidParameter",
        ),
        (
            vm_body(
                scheduledEventsProfile={
                    "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT1M"}
                }
            ),
            400,
            "InvalidParameter",
        ),
    ],
)
async def test_a_vm_that_cannot_be_is_refused(
    azure: VmClient, body: object, status: int, code: str
) -> None:
    assert (await azure.refused("PUT", f"{VMS}/box", body, status))[0] == code
    await azure.ask("GET", f"{VMS}/box", status=404)


async def test_names_have_a_form(azure: VmClient) -> None:
    for name in ("n" * 65, "-box", "b%20x"):
        code, _ = await azure.refused("PUT", f"{VMS}/{name}", vm_body())
        assert code == "InvalidResourceName"


async def test_a_patch_needs_a_vm(azure: VmClient) -> None:
    code, _ = await azure.refused("PATCH", f"{VMS}/box", {"tags": {}}, 404)
    assert code == "ResourceNotFound"
    wrong = {"properties": {"osProfile": "linux"}}
    code, _ = await azure.refused("PATCH", f"{VMS}/db", wrong)
    assert code.startswith("InvalidRequest")


async def test_what_a_vm_was_made_with_stays(azure: VmClient) -> None:
    await azure.vm("box")
    member = {"availabilitySet": {"id": f"{SETS}/web"}}
    for properties in (member, {"priority": "Spot"}):
        code, message = await azure.refused("PUT", f"{VMS}/box", vm_body(**properties), 409)
        assert code == "PropertyChangeNotAllowed"
        assert next(iter(properties)) in message
    moved = {**vm_body(), "location": "northeurope"}
    assert (await azure.refused("PUT", f"{VMS}/box", moved, 409))[0] == "InvalidResourceLocation"
    await azure.put(f"{VMS}/web-0", vm_body(**member), 200)


async def test_old_versions_do_not_know_the_policy(azure: VmClient) -> None:
    approving = {"userInitiatedReboot": {"automaticallyApprove": True}}
    body = vm_body(scheduledEventsPolicy=approving)
    code, message = await azure.refused("PUT", f"{VMS}/box", body, version="2024-03-01")
    assert code == "BadRequest"
    assert "Could not find member 'scheduledEventsPolicy'" in message
    made = await azure.put(f"{VMS}/box", body)
    assert made["properties"]["scheduledEventsPolicy"]["userInitiatedReboot"] == {
        "automaticallyApprove": True
    }
    old = await azure.get(f"{VMS}/box", version="2020-06-01")
    assert "scheduledEventsPolicy" not in old["properties"]
    assert await azure.put(f"{VMS}/box", old, 200, version="2020-06-01") == old


async def test_an_interface_serves_one_vm(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    await azure.vm("box", networkProfile=uses("nic"))
    nic = (await azure.get(f"{NICS}/nic"))["properties"]
    assert nic["virtualMachine"] == {"id": f"{VMS}/box"}
    assert nic["primary"] is True
    assert nic["macAddress"]
    again = vm_body(networkProfile=uses("nic"))
    code, message = await azure.refused("PUT", f"{VMS}/other", again, 409)
    assert code == "NicInUse"
    assert f"{VMS}/box" in message
    assert (await azure.refused("DELETE", f"{NICS}/nic"))[0] == "NicInUse"


async def test_a_second_interface_adds_its_address(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("one")
    await azure.interface("two")
    await azure.vm("box", networkProfile=uses("one"))
    await azure.vm("box", 200, networkProfile=uses("one", "two"))
    assert (await azure.instance("box"))["addresses"] == ["10.9.0.4", "10.9.0.5"]
    assert (await azure.refused("DELETE", f"{NICS}/two"))[0] == "NicInUse"
    static = {"privateIPAllocationMethod": "Static", "privateIPAddress": "10.9.0.9"}
    await azure.interface("two", 200, **static)
    assert (await azure.instance("box"))["addresses"] == ["10.9.0.4", "10.9.0.9"]
    await azure.vm("box", 200, networkProfile=uses("two"))
    assert (await azure.instance("box"))["addresses"] == ["10.9.0.9"]
    await azure.ask("DELETE", f"{NICS}/one")


async def test_the_primary_address_comes_first(azure: VmClient) -> None:
    await azure.network()
    configurations = [
        {"name": name, "properties": {"subnet": {"id": SUBNET}, "primary": name == "main"}}
        for name in ("side", "main")
    ]
    body = {"location": "local", "properties": {"ipConfigurations": configurations}}
    await azure.put(f"{NICS}/nic", body)
    await azure.vm("box", networkProfile=uses("nic"))
    assert (await azure.instance("box"))["addresses"] == ["10.9.0.5", "10.9.0.4"]


async def test_an_interface_that_changes_while_it_is_attached_is_attached(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.network()
    await azure.interface("nic")
    store = azure.rig.node.store
    real, is_first = store.keep, iter((True,))

    async def keep(kind: str, key: str, body: str, **named: Any) -> Any:
        if key.endswith("/networkinterfaces/nic") and next(is_first, False):
            await azure.patch(f"{NICS}/nic", {"tags": {"a": "b"}})
        return await real(kind, key, body, **named)

    monkeypatch.setattr(store, "keep", keep)
    await azure.vm("box", networkProfile=uses("nic"))
    assert (await azure.get(f"{NICS}/nic"))["tags"] == {"a": "b"}
    assert (await azure.refused("DELETE", f"{NICS}/nic"))[0] == "NicInUse"


async def test_addresses_that_the_fleet_declared_stay_and_come_first(azure: VmClient) -> None:
    (declared,) = (await azure.instance("db"))["addresses"]
    await azure.network()
    await azure.interface("nic")
    await azure.vm("db", 200, networkProfile=uses("nic"))
    assert (await azure.instance("db"))["addresses"] == [declared, "10.9.0.4"]
    static = {"privateIPAllocationMethod": "Static", "privateIPAddress": "10.9.0.9"}
    await azure.interface("nic", 200, **static)
    assert (await azure.instance("db"))["addresses"] == [declared, "10.9.0.9"]
    await azure.vm("db", 200, networkProfile=uses())
    assert (await azure.instance("db"))["addresses"] == [declared]


async def test_a_vm_without_interfaces_has_no_address_left(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    await azure.vm("box", networkProfile=uses("nic"))
    await azure.vm("box", 200, networkProfile=uses())
    assert (await azure.instance("box"))["addresses"] == []
    await azure.ask("DELETE", f"{NICS}/nic")
    await azure.interface("next")
    await azure.vm("other", networkProfile=uses("next"))
    assert (await azure.instance("other"))["addresses"] == ["10.9.0.4"]


@pytest.mark.parametrize("spell", [str, str.lower, str.upper])
async def test_secrets_are_not_kept(azure: VmClient, spell: Callable[[str], str]) -> None:
    profile = {
        "computerName": "box",
        spell("adminPassword"): "s3cret!",
        spell("customData"): "aGk=",
    }
    more: dict[str, Any] = {spell("userData"): "aGk="}
    await azure.vm("box", osProfile=profile, **more)
    answer = await azure.ask("GET", f"{VMS}/box")
    assert "s3cret!" not in answer.text
    assert "aGk=" not in answer.text
    records = await azure.rig.node.store.records("arm", limit=100)
    assert not any("s3cret!" in each.body for each in records)
    assert without_secrets({"location": "local"}) == {"location": "local", "properties": {}}


async def test_what_arm_made_outlives_a_restart(tmp_path: Path) -> None:
    store = {"store_url": f"sqlite:///{tmp_path}/fleet.db"}
    async with running_client(VmClient, **store) as azure:
        await azure.network()
        await azure.interface("nic")
        made = await azure.vm("box", networkProfile=uses("nic"))
    async with running_client(VmClient, **store) as azure:
        assert await azure.get(f"{VMS}/box") == made
        assert (await azure.get(f"{NICS}/nic"))["properties"]["virtualMachine"]
        list_reply = await azure.get(f"{GROUP}/providers/Microsoft.Compute/virtualMachines")
        assert "box" in [each["name"] for each in list_reply["value"]]
