"""What instances see of an event, what it waits for, and how many there are."""

import json
from typing import Any

from tests.operator_api.rig import Rig


async def documents(rig: Rig, id: str) -> dict[str, dict[str, Any]]:
    found = (await rig.get(f"/events/{id}/documents"))["documents"]
    return {each["apiVersion"]: each for each in found}


async def test_the_newest_document_is_what_an_instance_gets(rig: Rig) -> None:
    event = await rig.schedule("web-0", duration="2m")
    before = await documents(rig, event["id"])
    seen = await rig.document("web-0")
    after = await documents(rig, event["id"])
    assert json.loads(before["2020-07-01"]["body"]) == seen
    assert json.loads(after["2020-07-01"]["body"]) == seen


async def test_a_document_holds_this_event_alone(rig: Rig) -> None:
    await rig.schedule("web-1")
    event = await rig.schedule("web-0")
    (shown,) = json.loads((await documents(rig, event["id"]))["2020-07-01"]["body"])["Events"]
    assert shown["EventId"] == event["id"]


async def test_a_version_hides_what_is_younger_than_itself(rig: Rig) -> None:
    event = await rig.schedule("workers_0", type="Preempt")
    found = await documents(rig, event["id"])
    assert [name for name, each in found.items() if not each["shown"]] == [
        "2017-03-01",
        "2017-08-01",
    ]
    assert json.loads(found["2017-08-01"]["body"])["Events"] == []


async def test_nobody_sees_what_is_over(rig: Rig) -> None:
    event = await rig.schedule("web-0")
    await rig.post(f"/events/{event['id']}/cancel")
    assert not any(each["shown"] for each in (await documents(rig, event["id"])).values())


async def test_an_unknown_event_has_no_documents(rig: Rig) -> None:
    assert (await rig.get("/events/nobody/documents", 404))["code"] == "unknown-event"


async def test_an_event_waits_for_what_has_started_in_another_update_domain(rig: Rig) -> None:
    first = await rig.schedule("web-0", duration="1h")
    other = await rig.schedule("web-1")
    same = await rig.schedule("web-2")
    await rig.post(f"/events/{first['id']}/approve")
    assert (await rig.get(f"/events/{other['id']}"))["waitsFor"] == [first["id"]]
    assert (await rig.get(f"/events/{same['id']}"))["waitsFor"] == []


async def test_a_delete_waits_for_the_others_that_nobody_approved(rig: Rig) -> None:
    await rig.activate("workers_0")
    first = await rig.post("/instances/workers_0/delete", status=202)
    second = await rig.post("/instances/workers_1/delete", status=202)
    await rig.post(f"/events/{first['id']}/approve")
    assert (await rig.get(f"/events/{first['id']}"))["waitsFor"] == [second["id"]]
    assert (await rig.get(f"/events/{second['id']}"))["waitsFor"] == []


async def test_an_event_says_what_it_waits_for(rig: Rig) -> None:
    first = await rig.schedule("web-0", duration="1h")
    other = await rig.schedule("web-1")
    asked = (await rig.get(f"/events/{first['id']}"))["waits"]
    assert asked.startswith("for an approval; without one it starts at 20")
    assert (await rig.post(f"/events/{first['id']}/approve"))["waits"] is None
    blocked = await rig.post(f"/events/{other['id']}/approve")
    said = f"until Reboot {first['id']} of web-0 is over, which has started and is in its way"
    assert blocked["waits"] == said
    assert (await rig.get(f"/events/{other['id']}"))["waits"] == said
    assert {each["waits"] for each in (await rig.get("/events"))["events"]} == {None}


async def test_an_approved_delete_says_which_others_it_waits_for(rig: Rig) -> None:
    await rig.activate("workers_0")
    first = await rig.post("/instances/workers_0/delete", status=202)
    second = await rig.post("/instances/workers_1/delete", status=202)
    held = (await rig.post(f"/events/{first['id']}/approve"))["waits"]
    assert held.startswith(f"until Terminate {second['id']} of workers_1 is approved too")
    assert (await rig.post(f"/events/{second['id']}/approve"))["waits"] is None


async def test_events_are_counted_by_type_and_phase(rig: Rig) -> None:
    assert (await rig.get("/event-counts"))["counts"] == []
    event = await rig.schedule("web-0")
    await rig.schedule("web-1", type="Freeze")
    await rig.schedule("db", type="Freeze")
    await rig.post(f"/events/{event['id']}/cancel")
    found = (await rig.get("/event-counts"))["counts"]
    assert {(each["type"], each["phase"]): each["count"] for each in found} == {
        ("Freeze", "scheduled"): 2,
        ("Reboot", "cancelled"): 1,
    }


async def test_the_id_may_be_in_lower_case(rig: Rig) -> None:
    event = await rig.schedule("web-0")
    assert await documents(rig, event["id"].lower()) == await documents(rig, event["id"])
