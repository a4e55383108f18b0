"""Availability sets in ARM."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fairwarning.azure_api import availability_sets
from fairwarning.azure_api.instance_changes import update_roster
from tests.azure_api.arm_client import COMPUTE, S, running_client
from tests.azure_api.vm_client import SETS, VMS, VmClient, vm_body


@pytest_asyncio.fixture
async def azure() -> AsyncIterator[VmClient]:
    async with running_client(VmClient) as found:
        yield found


def set_body(**properties: Any) -> dict[str, Any]:
    return {"location": "local", "sku": {"name": "Aligned"}, "properties": properties}


async def test_a_set_is_there_before_its_vms(azure: VmClient) -> None:
    made = await azure.put(f"{SETS}/mine", set_body(), 200)
    assert made == await azure.get(f"{COMPUTE}//availabilitySets/MINE")
    assert made["id"] == f"{SETS}/mine"
    assert made["sku"] == {"name": "Aligned"}
    assert made["properties"] == {
        "platformUpdateDomainCount": 5,
        "platformFaultDomainCount": 2,
        "virtualMachines": [],
    }


async def test_a_set_of_the_fleet_is_shown_with_its_members(azure: VmClient) -> None:
    shown = await azure.get(f"{SETS}/web")
    assert shown["properties"]["platformUpdateDomainCount"] == 2
    members = [each["id"] for each in shown["properties"]["virtualMachines"]]
    assert members == [f"{VMS}/web-{n}" for n in range(4)]


async def test_tags_are_kept_and_replaced(azure: VmClient) -> None:
    await azure.put(f"{SETS}/mine", {**set_body(), "tags": {"a": "1"}}, 200)
    assert (await azure.patch(f"{SETS}/mine", {"tags": {"b": "2"}}))["tags"] == {"b": "2"}
    assert (await azure.patch(f"{SETS}/web", {"tags": {"c": "3"}}))["tags"] == {"c": "3"}
    assert len((await azure.get(f"{SETS}/web"))["properties"]["virtualMachines"]) == 4


async def test_domains_are_fixed_once_somebody_is_placed(azure: VmClient) -> None:
    await azure.put(f"{SETS}/mine", set_body(platformUpdateDomainCount=3), 200)
    made = await azure.put(f"{SETS}/mine", set_body(platformUpdateDomainCount="4"), 200)
    assert made["properties"]["platformUpdateDomainCount"] == 4
    await azure.vm("box", availabilitySet={"id": f"{SETS}/mine"})
    await azure.put(f"{SETS}/mine", set_body(platformUpdateDomainCount=4), 200)
    for name in ("platformUpdateDomainCount", "platformFaultDomainCount"):
        body = set_body(**{name: 3})
        code, message = await azure.refused("PUT", f"{SETS}/mine", body, 409)
        assert code == "PropertyChangeNotAllowed"
        assert name in message


async def test_domains_stay_for_who_is_placed_meanwhile(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.put(f"{SETS}/mine", set_body(platformUpdateDomainCount=3), 200)

    async def revise_late(*args: Any) -> None:
        await azure.vm("box", availabilitySet={"id": f"{SETS}/mine"})
        await update_roster(*args)

    monkeypatch.setattr(availability_sets, "update_roster", revise_late)
    body = set_body(platformUpdateDomainCount=1)
    code, _ = await azure.refused("PUT", f"{SETS}/mine", body, 409)
    assert code == "PropertyChangeNotAllowed"


async def test_a_set_of_the_fleet_is_gone_with_its_last_member(azure: VmClient) -> None:
    for n in range(4):
        await azure.begin("DELETE", f"{VMS}/web-{n}")
    await azure.advance("1m")
    await azure.ask("GET", f"{SETS}/web", status=404)
    assert (await azure.get(SETS))["value"] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("platformUpdateDomainCount", 21),
        ("platformFaultDomainCount", 4),
        ("platformFaultDomainCount", 0),
        ("platformUpdateDomainCount", "many"),
        ("platformUpdateDomainCount", True),
    ],
)
async def test_domains_have_a_range(azure: VmClient, name: str, value: object) -> None:
    code, message = await azure.refused("PUT", f"{SETS}/mine", set_body(**{name: value}))
    assert code == "InvalidParameter"
    assert name in message
    await azure.ask("GET", f"{SETS}/mine", status=404)


async def test_a_set_needs_a_location_and_a_name(azure: VmClient) -> None:
    assert (await azure.refused("PUT", f"{SETS}/mine", {}))[0] == "LocationRequired"
    long = f"{SETS}/{'s' * 81}"
    assert (await azure.refused("PUT", long, set_body()))[0] == "InvalidResourceName"
    code, _ = await azure.refused("PATCH", f"{SETS}/mine", {"tags": {}}, 404)
    assert code == "ResourceNotFound"


async def test_members_share_the_policy_of_their_set(azure: VmClient) -> None:
    policy = {"userInitiatedReboot": {"automaticallyApprove": True}}
    await azure.put(f"{SETS}/web", set_body(scheduledEventsPolicy=policy), 200)
    shown = await azure.get(f"{SETS}/web")
    assert shown["properties"]["scheduledEventsPolicy"]["userInitiatedReboot"] == {
        "automaticallyApprove": True
    }
    member = await azure.get(f"{VMS}/web-0")
    assert "scheduledEventsPolicy" not in member["properties"]
    await azure.put(f"{VMS}/web-0", member, 200)
    await azure.rig.activate("web-1")
    await azure.begin("POST", f"{VMS}/web-0/restart")
    (event,) = await azure.events("web-1")
    assert (event["EventStatus"], event["Resources"]) == ("Started", ["web-0"])


async def test_a_set_is_deleted_when_it_is_empty(azure: VmClient) -> None:
    await azure.put(f"{SETS}/mine", set_body(), 200)
    await azure.vm("box", availabilitySet={"id": f"{SETS}/mine"})
    code, message = await azure.refused("DELETE", f"{SETS}/mine", status=409)
    assert code == "OperationNotAllowed"
    assert "cannot be deleted" in message
    await azure.begin("DELETE", f"{VMS}/box")
    await azure.advance("1m")
    assert (await azure.get(f"{SETS}/mine"))["properties"]["virtualMachines"] == []
    await azure.ask("DELETE", f"{SETS}/mine")
    await azure.ask("DELETE", f"{SETS}/mine", status=204)
    await azure.ask("GET", f"{SETS}/mine", status=404)
    code, _ = await azure.refused(
        "PUT", f"{VMS}/more", vm_body(availabilitySet={"id": f"{SETS}/mine"}), 404
    )
    assert code == "ResourceNotFound"
    again = await azure.put(f"{SETS}/mine", set_body(platformFaultDomainCount=3), 200)
    assert again["properties"]["platformFaultDomainCount"] == 3


async def test_a_namesake_that_the_fleet_gets_later_inherits_nothing(azure: VmClient) -> None:
    """A declaration keeps what it leaves out, but only of a set that is still there."""
    resources = {"availability_set": [{"name": "mine", "instances": ["one"]}]}
    for is_deleted in (False, True):
        await azure.put(f"{SETS}/mine", set_body(platformUpdateDomainCount=3), 200)
        if is_deleted:
            await azure.ask("DELETE", f"{SETS}/mine")
        await azure.rig.post("/fleet", resources)
        shown = (await azure.get(f"{SETS}/mine"))["properties"]
        assert (shown["platformUpdateDomainCount"] == 3) is not is_deleted
        await azure.begin("DELETE", f"{VMS}/one")
        await azure.advance("1m")


async def test_lists_hold_empty_sets_and_those_of_the_fleet(azure: VmClient) -> None:
    await azure.put(f"{SETS}/mine", set_body(), 200)
    for path in (SETS, f"{S}/providers/Microsoft.Compute/availabilitySets"):
        list_reply = (await azure.get(path))["value"]
        assert [each["name"] for each in list_reply] == ["mine", "web"]


async def test_a_count_of_domains_may_be_written_as_a_text(azure: VmClient) -> None:
    body = set_body(platformUpdateDomainCount="7", platformFaultDomainCount="3")
    made = await azure.put(f"{SETS}/mine", body, 200)
    assert made["properties"]["platformUpdateDomainCount"] == 7
    assert made["properties"]["platformFaultDomainCount"] == 3
