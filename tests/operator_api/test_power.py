"""Power and disks through the API: what an owner may do to an instance without deleting it."""

import pytest

from tests.operator_api.rig import Rig


@pytest.mark.parametrize(
    ("verb", "power"), [("stop", "stopped"), ("deallocate", "deallocated"), ("start", "running")]
)
async def test_power_changes_at_once_and_unannounced(verb: str, power: str, rig: Rig) -> None:
    await rig.activate("web-0")
    event = await rig.post(f"/instances/web-0/{verb}", status=202)
    assert (event["operation"], event["announced"]) == (verb, False)
    assert (await rig.document("web-0"))["Events"] == []
    await rig.post("/clock/advance", {"by": "1m"})
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "completed"
    assert (await rig.get("/instances/web-0"))["power"] == power


async def test_a_change_of_power_cannot_be_scheduled(rig: Rig) -> None:
    body = {"type": "Power", "targets": ["web-0"]}
    assert (await rig.post("/events", body, 422))["code"] == "body-invalid"


async def test_a_reimage_is_announced_if_the_instances_own_model_says_so(rig: Rig) -> None:
    await rig.activate("workers_0")
    at_once = await rig.post("/instances/workers_0/reimage", status=202)
    assert (at_once["operation"], at_once["announced"]) == ("reimage", False)
    await rig.post("/scopes/workers/model", {"reimageNotice": "PT15M"})
    await rig.post("/scopes/workers/upgrade")
    announced = await rig.post("/instances/workers_1/reimage", status=202)
    assert (announced["type"], announced["phase"]) == ("Reboot", "scheduled")
    assert (await rig.document("workers_1"))["Events"][0]["EventId"] == announced["id"]


async def test_a_reimaged_instance_has_the_latest_model(rig: Rig) -> None:
    await rig.post("/scopes/workers/model", {"terminateNotice": "PT9M"})
    await rig.post("/instances/workers_0/reimage", status=202)
    await rig.post("/clock/advance", {"by": "5m"})
    reimaged, behind = [await rig.get(f"/instances/workers_{n}") for n in (0, 1)]
    assert (reimaged["terminateNotice"], reimaged["latestModelApplied"]) == ("PT9M", True)
    assert (behind["terminateNotice"], behind["latestModelApplied"]) == ("PT5M", False)
