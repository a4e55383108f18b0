"""`lasts`: an event stays Started for as long as a rehearsal wants, whatever its duration says."""

from tests.operator_api.rig import Rig


async def test_an_event_lasts_as_long_as_asked_and_shows_its_own_duration(rig: Rig) -> None:
    await rig.activate("web-0")
    event = await rig.schedule(duration="9s", lasts="40m")
    await rig.post("/clock/advance", {"by": "54m"})
    (shown,) = (await rig.document("web-0"))["Events"]
    assert (shown["EventStatus"], shown["DurationInSeconds"]) == ("Started", 9)
    await rig.post("/clock/advance", {"by": "1m"})
    found = await rig.get(f"/events/{event['id']}")
    assert found["phase"] == "completed"
    assert "AttemptFailed" not in [each["kind"] for each in found["timeline"]]
    assert (await rig.document("web-0"))["Events"] == []


async def test_nothing_lasts_for_ever(rig: Rig) -> None:
    body = {"type": "Reboot", "targets": ["web-0"], "lasts": "999999d"}
    assert (await rig.post("/events", body, 422))["code"] == "duration-invalid"
    assert (await rig.get("/events"))["events"] == []


async def test_an_event_that_is_postponed_lasts_as_long_as_before(rig: Rig) -> None:
    await rig.activate("web-0")
    event = await rig.schedule(duration="9s", lasts="40m")
    later = await rig.post(f"/events/{event['id']}/postpone", {"notice": "20m"}, 201)
    await rig.post("/clock/advance", {"by": "59m"})
    assert (await rig.get(f"/events/{later['id']}"))["phase"] == "started"
    await rig.post("/clock/advance", {"by": "2m"})
    assert (await rig.get(f"/events/{later['id']}"))["phase"] == "completed"
