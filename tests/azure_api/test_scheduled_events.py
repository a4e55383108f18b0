"""Scheduled events in ARM: seen as in Resource Graph, approved as from inside."""

from typing import Any

import pytest

from fairwarning.azure_api import scheduled_events
from fairwarning.core.instants import HOUR_MS
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from tests.azure_api.arm_client import COMPUTE, ArmClient, S, asking

EVENTS = "providers/Microsoft.Maintenance/scheduledevents"
WEB = f"{COMPUTE}/availabilitySets/web"
DB = f"{COMPUTE}/virtualMachines/db"
SETS = f"{COMPUTE}/virtualMachineScaleSets"
NOBODYS = "00000000-0000-4000-8000-00000000FFFF"


async def acknowledge(arm: ArmClient, owner: str, id: str, status: int = 200) -> Any:
    return await arm.read("POST", f"{owner}/{EVENTS}/{id}/acknowledge", None, status)


async def acknowledge_all(arm: ArmClient, owner: str, ids: Any, status: int = 200) -> Any:
    return await arm.read("POST", f"{owner}/{EVENTS}", {"value": ids}, status)


async def ids(arm: ArmClient, place: str) -> list[str]:
    return [each["name"] for each in (await arm.get(f"{place}/{EVENTS}"))["value"]]


async def test_an_approval_starts_the_event_and_names_who_gave_it() -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("web-0", duration="1h")
        said = await acknowledge(arm, WEB, event["id"])
        assert said == {"value": "Successfully approved scheduled event"}
        found = await arm.rig.get(f"/events/{event['id']}")
        assert (found["phase"], found["startCause"]) == ("started", "approved")
        assert [each["by"] for each in found["approvals"]] == ["operator:local"]


async def test_approving_again_or_in_another_spelling_changes_nothing() -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("web-0", duration="1h")
        await acknowledge(arm, WEB, event["id"])
        await acknowledge(arm, f"{S}{WEB.removeprefix(S).upper()}", event["id"].lower())
        assert len((await arm.rig.get(f"/events/{event['id']}"))["approvals"]) == 1


async def test_an_event_belongs_to_its_set_and_to_the_machines_that_it_names() -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("web-0")
        machine = f"{COMPUTE}/virtualMachines/web-0"
        assert await ids(arm, WEB) == await ids(arm, machine) == [event["id"]]
        assert await ids(arm, f"{COMPUTE}/virtualMachines/web-1") == []
        await acknowledge(arm, f"{COMPUTE}/virtualMachines/web-1", event["id"], 404)
        assert (await arm.rig.get(f"/events/{event['id']}"))["phase"] == "scheduled"
        await acknowledge(arm, machine, event["id"])


@pytest.mark.parametrize("owner", [DB, f"{SETS}/workers"])
async def test_another_resources_event_is_unknown(owner: str) -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("web-0")
        error = await acknowledge(arm, owner, event["id"], 404)
        assert error == {"code": "InvalidScheduledEventId", "message": "Scheduled event not found"}
        assert (await arm.rig.get(f"/events/{event['id']}"))["approvals"] == []


async def test_an_event_that_is_over_is_unknown() -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("db")
        await arm.rig.clock.advance(HOUR_MS)
        await acknowledge(arm, DB, event["id"], 404)
        await arm.get(f"{DB}/{EVENTS}/{event['id']}", 404)
        assert await ids(arm, DB) == []


async def test_what_no_instance_sees_cannot_be_approved() -> None:
    async with asking() as arm:
        answer = await arm.answer("POST", f"{DB}/restart")
        assert answer.status_code == 202, "nobody watches, so it runs unseen"
        assert await ids(arm, DB) == []
        assert await ids(arm, S) == []


async def test_an_event_that_ends_before_its_approval_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("db")
        engine = arm.rig.node.engine
        real = engine.approve

        async def approve(*args: Any, **named: Any) -> Any:
            await arm.rig.post(f"/events/{event['id']}/cancel")
            return await real(*args, **named)

        monkeypatch.setattr(engine, "approve", approve)
        await acknowledge(arm, DB, event["id"], 404)


@pytest.mark.parametrize(
    ("owner", "id", "status", "code"),
    [
        (DB, "17", 400, "BadRequest"),
        (DB, NOBODYS, 404, "InvalidScheduledEventId"),
        (f"{COMPUTE}/virtualMachines/none", NOBODYS, 404, "ResourceNotFound"),
        (f"{COMPUTE}/availabilitySets/none", NOBODYS, 404, "ResourceNotFound"),
        (f"{COMPUTE}/disks/db", NOBODYS, 400, "BadRequest"),
        (
            f"{COMPUTE}/virtualMachineScaleSets/workers/virtualMachines/0",
            NOBODYS,
            400,
            "BadRequest",
        ),
        (COMPUTE, NOBODYS, 400, "BadRequest"),
        (S, NOBODYS, 400, "BadRequest"),
    ],
)
async def test_who_is_meant_must_be_clear(owner: str, id: str, status: int, code: str) -> None:
    async with asking() as arm:
        assert (await acknowledge(arm, owner, id, status))["code"] == code


async def test_a_list_is_approved_at_once() -> None:
    async with asking() as arm:
        first, second = [await arm.rig.schedule(name) for name in ("web-0", "web-2")]
        said = await acknowledge_all(arm, WEB, [first["id"], second["id"]] * 50)
        assert said == {"value": "Successfully approved all Scheduled Events in the list"}
        for event in (first, second):
            assert (await arm.rig.get(f"/events/{event['id']}"))["approvals"]


async def test_a_mixed_list_says_of_each_what_became_of_it() -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("db")
        said = await acknowledge_all(arm, DB, [event["id"], NOBODYS], 207)
        assert said["error"]["code"] == "MultiStatusResponse"
        assert said["error"]["details"] == [
            {
                "code": "OK",
                "message": "Successfully approved scheduled event",
                "target": event["id"],
            },
            {"code": "NotFound", "message": "Scheduled event not found", "target": NOBODYS},
        ]
        assert (await arm.rig.get(f"/events/{event['id']}"))["approvals"]


async def test_a_list_of_unknown_events_is_not_found() -> None:
    async with asking() as arm:
        error = await acknowledge_all(arm, DB, [NOBODYS], 404)
        assert error["code"] == "InvalidScheduledEventId"


@pytest.mark.parametrize("value", [None, [], "x", [1], [NOBODYS, "17"], [NOBODYS] * 101])
async def test_a_list_that_is_none_is_refused_and_approves_nothing(value: Any) -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("db")
        if isinstance(value, list) and value and value[-1] == "17":
            value = [event["id"], "17"]
        assert (await acknowledge_all(arm, DB, value, 400))["code"] == "BadRequest"
        assert (await arm.rig.get(f"/events/{event['id']}"))["approvals"] == []


async def test_a_row_is_that_of_resource_graph() -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("db", description="A host is repaired.")
        row = await arm.get(f"{DB}/{EVENTS}/{event['id'].lower()}")
        tenant = row.pop("tenantId")
        not_before = row["properties"].pop("NotBefore")
        assert tenant
        assert not_before.endswith(" GMT")
        assert row == {
            "id": f"{DB}/{EVENTS}/{event['id']}",
            "name": event["id"],
            "type": "microsoft.maintenance/scheduledevents",
            "location": "local",
            "resourceGroup": "default",
            "subscriptionId": DEFAULT_SUBSCRIPTION,
            "properties": {
                "EventId": event["id"],
                "EventStatus": "Scheduled",
                "EventType": "Reboot",
                "ResourceType": "VirtualMachine",
                "Resources": ["db"],
                "Description": "A host is repaired.",
                "EventSource": "Platform",
                "DurationInSeconds": event["durationSeconds"],
                "ScheduledEventApiVersion": "2020-07-01",
                "TargetResourceId": DB,
            },
        }
        assert (await arm.get(f"{DB}/{EVENTS}"))["value"][0]["properties"]["Resources"] == ["db"]


@pytest.mark.parametrize("page", [1, 2, 200])
async def test_a_group_and_a_subscription_list_all_of_theirs(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled_events, "PAGE", page)
    async with asking() as arm:
        await arm.put_group("empty")
        await arm.rig.post("/fleet", {"vm": [{"name": "far", "resource_group": "default-2"}]})
        far = (await arm.rig.schedule("far"))["id"]
        events = {(await arm.rig.schedule(name))["id"] for name in ("web-0", "db", "workers_1")}
        assert set(await ids(arm, S)) == {*events, far}
        assert set(await ids(arm, f"{S}/resourceGroups/Default")) == events
        assert await ids(arm, f"{S}/resourceGroups/empty") == []
        await arm.get(f"{S}/resourceGroups/none/{EVENTS}", 404)


async def test_an_approver_may_approve_and_nothing_else() -> None:
    async with asking() as arm:
        event = await arm.rig.schedule("db")
        for role, approves in (("viewer", 403), ("approver", 200)):
            made = await arm.rig.post("/tokens", {"name": role, "role": role}, 201)
            arm.http.headers["authorization"] = f"Bearer {made['secret']}"
            assert await ids(arm, DB) == [event["id"]]
            await acknowledge(arm, DB, event["id"], approves)
        for method, path in (
            ("POST", f"{DB}/restart"),
            ("PUT", DB),
            ("PATCH", DB),
            ("DELETE", DB),
            ("DELETE", f"{S}/resourcegroups/default"),
        ):
            error = await arm.read(method, path, None, 403)
            assert error["code"] == "AuthorizationFailed"
