"""Events through the API: announced, seen by instances, decided, and over."""

from typing import Any
from urllib.parse import quote

import pytest

from fairwarning.core.instants import HOUR_MS, format_rfc3339, later
from tests.operator_api.rig import Rig

WEB = "00000000-0000-0000-0000-000000000000/default/availability-set/web"


async def test_what_is_scheduled_is_in_the_document_of_its_instance(rig: Rig) -> None:
    event = await rig.schedule("web-0", notice="30m", description="new kernel", duration="2m")
    (seen,) = (await rig.document("web-0"))["Events"]
    assert seen["EventId"] == event["id"]
    assert (event["scope"], event["phase"], event["resources"]) == (WEB, "scheduled", ["web-0"])
    assert (event["description"], event["durationSeconds"]) == ("new kernel", 120)
    assert event["timeline"][0]["kind"] == "Scheduled"
    assert event["timeline"][0]["by"] == "operator:local"


async def test_an_id_that_is_brought_along_is_kept_in_capitals(rig: Rig) -> None:
    id = "602d9444-d2cd-49c7-8624-8643e7171297"
    assert (await rig.schedule("web-0", id=id))["id"] == id.upper()
    assert (await rig.get(f"/events/{id}"))["id"] == id.upper()
    assert (await rig.get("/history", event=id))["entries"]


async def test_an_event_of_a_whole_update_domain_names_all_its_instances(rig: Rig) -> None:
    body = {"type": "Freeze", "scope": "web", "updateDomain": 1}
    event = await rig.post("/events", body, 201)
    assert event["resources"] == ["web-1", "web-3"]
    await rig.post(f"/events/{event['id']}/cancel")
    await rig.delete("/instances/web-3")
    assert (await rig.post("/events", body, 201))["resources"] == ["web-1"]


async def test_an_approval_starts_the_event_and_is_in_its_story(rig: Rig) -> None:
    event = await rig.schedule(duration="1h")
    approved = await rig.post(f"/events/{event['id'].lower()}/approve?why=all+drained")
    assert approved["phase"] == "started"
    assert approved["approvals"][0]["by"] == "operator:local"
    kinds = [each["kind"] for each in approved["timeline"]]
    assert kinds[:3] == ["Scheduled", "Approved", "Started"]
    assert approved["timeline"][1]["why"] == "all drained"


async def test_time_that_is_moved_through_the_api_carries_an_event_to_its_end(rig: Rig) -> None:
    event = await rig.schedule(duration="1m")
    await rig.post("/clock/advance", {"by": "15m"})
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "started"
    await rig.post("/clock/advance", {"by": "PT2M"})
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "completed"


async def test_cancelling_needs_a_pending_event(rig: Rig) -> None:
    event = await rig.schedule()
    cancelled = await rig.post(f"/events/{event['id']}/cancel", {"reason": "not today"})
    assert (cancelled["phase"], cancelled["outcome"]) == ("cancelled", "not today")
    again = await rig.post(f"/events/{event['id']}/cancel", status=409)
    assert again["code"] == "event-finished"


async def test_a_cancelled_event_says_the_reason_however_it_was_given(rig: Rig) -> None:
    for path, body, outcome in (
        ("cancel?why=ticket+7", None, "ticket 7"),
        ("cancel?why=ticket+7", {"reason": "the disk is fine"}, "the disk is fine"),
    ):
        event = await rig.schedule()
        cancelled = await rig.post(f"/events/{event['id']}/{path}", body)
        assert cancelled["outcome"] == outcome
        assert cancelled["timeline"][-1]["why"] == "ticket 7"


async def test_postponing_cancels_and_announces_another(rig: Rig) -> None:
    event = await rig.schedule()
    other = await rig.post(f"/events/{event['id']}/postpone", {"notice": "2h"}, 201)
    before = await rig.get(f"/events/{event['id']}")
    assert before["phase"] == "cancelled"
    assert before["replacedBy"] == other["id"]
    assert other["notBefore"] > event["notBefore"]


async def test_an_operation_of_the_owner_is_an_event(rig: Rig) -> None:
    await rig.activate("workers_0")
    event = await rig.post("/instances/workers_0/delete", status=202)
    assert (event["type"], event["operation"], event["source"]) == ("Terminate", "delete", "User")
    assert (await rig.document("workers_0"))["Events"][0]["EventType"] == "Terminate"


async def test_pages_hold_every_event_once_newest_first(rig: Rig) -> None:
    made = []
    for name in ("web-0", "web-1", "web-2", "web-3", "db"):
        made.append((await rig.schedule(name))["id"])
        await rig.clock.advance(1)
    seen, after = [], None
    while True:
        page = await rig.get("/events", limit=2, **({"after": after} if after else {}))
        seen += [each["id"] for each in page["events"]]
        after = page["next"]
        if after is None:
            break
    assert seen == made[::-1]


async def test_filters_narrow_the_list(rig: Rig) -> None:
    first = await rig.schedule("web-0")
    await rig.schedule("db")
    await rig.post(f"/events/{first['id']}/cancel")
    chosen = await rig.get("/events", phase="cancelled", scope="web", type="Reboot")
    assert [each["id"] for each in chosen["events"]] == [first["id"]]
    by_instance = await rig.get("/events", instance="db")
    assert [each["resources"] for each in by_instance["events"]] == [["db"]]
    assert (await rig.get("/events", source="User"))["events"] == []
    assert (await rig.get("/events", instance="db", scope="vm/db")) == by_instance
    others: list[dict[str, Any]] = [
        {"scope": "web"},
        {"source": "User"},
        {"type": "Freeze"},
        {"phase": "cancelled"},
    ]
    for other in others:
        assert (await rig.get("/events", instance="db", **other))["events"] == [], other


async def test_bad_questions_get_the_documented_problem(rig: Rig) -> None:
    for body, status, code in (
        ({"type": "Reboot", "targets": ["web-9"]}, 404, "unknown-instance"),
        ({"type": "Reboot", "targets": []}, 422, "no-target"),
        ({"type": "Reboot", "targets": ["web-0", "web-1"]}, 422, "spans-update-domains"),
        ({"type": "Reboot", "targets": ["web-0", "db"]}, 422, "spans-scopes"),
        ({"type": "Explode", "targets": ["web-0"]}, 422, "body-invalid"),
        ({"type": "Reboot", "targets": ["db"], "notice": "soon"}, 422, "body-invalid"),
        ({"type": "Reboot", "targets": ["db"], "notBefore": "2026-01-01"}, 422, "instant-invalid"),
        ({"type": "Reboot", "targets": ["db"], "speed": 9}, 422, "body-invalid"),
    ):
        assert (await rig.post("/events", body, status))["code"] == code
    assert (await rig.get("/events/nope", 404))["code"] == "unknown-event"
    assert (await rig.get("/events", 422, limt=3))["code"] == "unknown-parameter"
    assert (await rig.get("/events", 422, after="x"))["code"] == "cursor-invalid"
    assert (await rig.get("/events"))["events"] == []


@pytest.mark.parametrize("name", ["web-2", "web/web-2", "workers_1", "db"])
async def test_who_was_deleted_is_not_called_unknown(rig: Rig, name: str) -> None:
    await rig.post(f"/instances/{quote(name, safe='')}/delete", status=202)
    await rig.post("/clock/advance", {"by": "10m"})
    for path, body in (
        ("/events", {"type": "Reboot", "targets": [name]}),
        (f"/instances/{quote(name, safe='')}/restart", None),
    ):
        problem = await rig.post(path, body, 404)
        assert problem["code"] == "instance-deleted"
        assert "choose one that still exists" in problem["detail"]
    stranger = {"type": "Reboot", "targets": ["shop/web-2"]}
    assert (await rig.post("/events", stranger, 404))["code"] == "unknown-instance"


async def test_the_past_of_what_is_gone_can_still_be_looked_at(rig: Rig) -> None:
    event = await rig.schedule("web-3")
    await rig.post(f"/events/{event['id']}/cancel")
    await rig.delete("/scopes/web")
    by_scope = await rig.get("/events", scope=WEB)
    by_instance = await rig.get("/events", instance=f"{WEB}/web-3")
    assert [each["id"] for each in by_scope["events"]] == [event["id"]]
    assert by_instance == by_scope
    assert (await rig.get("/history", scope=WEB))["entries"]
    await rig.get("/events", 404, scope="web")


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"notice": "1h", "notBefore": "2099-01-01T00:00:00Z"}, "/notice"),
        ({"notice": "1h", "alreadyHappened": True}, "/alreadyHappened"),
        ({"notBefore": "2099-01-01T00:00:00Z", "alreadyHappened": True}, "/alreadyHappened"),
    ],
)
async def test_when_it_happens_is_said_once(rig: Rig, more: dict[str, Any], pointer: str) -> None:
    problem = await rig.post("/events", {"type": "Reboot", "targets": ["db"], **more}, 422)
    assert (problem["code"], problem["pointer"]) == ("body-invalid", pointer)
    assert (await rig.get("/events"))["events"] == []


async def test_a_new_time_is_said_once_too(rig: Rig) -> None:
    event = await rig.schedule("db")
    for body in ({}, {"notice": "1h", "notBefore": "2099-01-01T00:00:00Z"}):
        problem = await rig.post(f"/events/{event['id']}/postpone", body, 422)
        assert problem["code"] == "body-invalid"
    until = format_rfc3339(later(rig.clock.now(), 3 * HOUR_MS))
    other = await rig.post(f"/events/{event['id']}/postpone", {"notBefore": until}, 201)
    assert other["notBefore"] == until


async def test_what_already_happened_has_started(rig: Rig) -> None:
    event = await rig.schedule("web-0", alreadyHappened=True)
    assert (event["phase"], event["startCause"]) == ("started", "already-happened")
    shown = await rig.get(f"/events/{event['id']}")
    assert (shown["waits"], shown["waitsFor"]) == (None, [])
    (seen,) = (await rig.document("web-0"))["Events"]
    assert seen["EventStatus"] == "Started"


async def test_an_instance_shows_the_events_that_name_it(rig: Rig) -> None:
    event = await rig.schedule("web-0")
    scope = await rig.get("/scopes/web")
    pending = {each["name"]: [one["id"] for one in each["pending"]] for each in scope["instances"]}
    assert pending == {"web-0": [event["id"]], "web-1": [], "web-2": [], "web-3": []}
    for name, ids in pending.items():
        shown = await rig.get(f"/instances/{name}")
        assert [each["id"] for each in shown["events"]] == ids
    await rig.post(f"/events/{event['id']}/cancel")
    assert (await rig.get("/instances/web-0"))["pending"] == []
