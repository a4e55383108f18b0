"""Rollouts through the API: what was asked for is what is planned, shown and carried out."""

from typing import Any

import pytest

from fairwarning.core.rollouts import parts
from tests.operator_api.rig import Rig

ASKED: dict[str, Any] = {
    "type": "Redeploy",
    "scopes": ["web"],
    "name": "patches",
    "description": "new kernel",
    "notice": "PT20M",
    "duration": "PT2M",
    "scopesAtOnce": 2,
    "pause": "PT10M",
    "stopOnFailure": False,
    "windows": [{"days": ["sat", "sun"], "from": "01:00", "to": "05:00"}],
    "timeZone": "Europe/Berlin",
    "blackouts": ["2026-12-24/2026-12-26"],
}
WEB = "00000000-0000-0000-0000-000000000000/default/availability-set/web"


async def test_a_rollout_is_shown_as_it_was_asked_for(rig: Rig) -> None:
    made = await rig.post("/rollouts?why=patch+day", ASKED, 201)
    (listed,) = (await rig.get("/rollouts"))["rollouts"]
    for shown in (made, await rig.get(f"/rollouts/{made['id']}"), listed):
        assert {name: shown[name] for name in ASKED} == {**ASKED, "scopes": [WEB]}
        assert (shown["phase"], shown["createdBy"]) == ("running", "operator:local")
        steps = [each["instances"] for each in shown["steps"]]
        assert steps == [["web-0", "web-2"], ["web-1", "web-3"]]
    (entry, *_) = (await rig.get("/history"))["entries"]
    assert entry["why"] == "patch day"
    assert made["why"] == "patch day"


async def test_what_is_not_said_has_its_default(rig: Rig) -> None:
    made = await rig.post("/rollouts", {"type": "Reboot", "scopes": ["web"]}, 201)
    assert (made["scopesAtOnce"], made["pause"], made["stopOnFailure"]) == (1, "PT0S", True)
    assert (made["windows"], made["blackouts"], made["notice"]) == ([], [], None)


@pytest.mark.parametrize("names", [["web", "web"], ["web", "availability-set/web", WEB]])
async def test_a_scope_is_taken_once_whatever_it_is_called(rig: Rig, names: list[str]) -> None:
    body = {"type": "Reboot", "scopes": names}
    planned = await rig.post("/rollouts/plan", body)
    assert len(planned["steps"]) == 2
    made = await rig.post("/rollouts", body, 201)
    assert (made["scopes"], len(made["steps"])) == ([WEB], 2)


async def test_a_plan_announces_nothing(rig: Rig) -> None:
    planned = await rig.post("/rollouts/plan", {"type": "Reboot", "scopes": ["web", "db"]})
    assert {each["phase"] for each in planned["steps"]} == {"waiting"}
    assert (await rig.get("/rollouts"))["rollouts"] == []
    assert (await rig.get("/events"))["events"] == []


async def test_each_decision_on_a_rollout_has_its_reason_in_the_history(rig: Rig) -> None:
    made = await rig.post("/rollouts", {"type": "Reboot", "scopes": ["web"]}, 201)
    for verb, phase in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert (await rig.post(f"/rollouts/{made['id']}/{verb}?why={verb}+it"))["phase"] == phase
        entries = (await rig.get("/history"))["entries"]
        assert f"{verb} it" in [each["why"] for each in entries[:3]]
    assert (await rig.post("/rollouts/20261116-220000-4f2a9c/pause", status=404))["code"]


async def test_the_steps_of_any_rollout_come_in_pages_with_counts(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "WHOLE_STEPS_MAX", 1)
    monkeypatch.setattr(parts, "PART_STEPS_MAX", 1)
    made = await rig.post("/rollouts", {"type": "Reboot", "scopes": ["web", "db"]}, 201)
    assert made["counts"] == {"waiting": 3}
    first = await rig.get(f"/rollouts/{made['id']}/steps", limit=2)
    assert [each["updateDomain"] for each in first["steps"]] == [0, 1]
    rest = await rig.get(f"/rollouts/{made['id']}/steps", after=first["next"])
    assert [each["scope"].rpartition("/")[2] for each in rest["steps"]] == ["db"]
    assert rest["next"] is None
    await rig.get(f"/rollouts/{made['id']}/steps", 422, after="nonsense")
