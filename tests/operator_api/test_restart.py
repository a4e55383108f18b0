"""What the control plane was told survives the process, on every store."""

from pathlib import Path

import pytest

from tests.operator_api.rig import Rig, running


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/fw.db"
    parts = dict(pair.split("=") for pair in request.getfixturevalue("postgres_dsn").split())
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"


async def test_events_tokens_rollouts_and_targets_are_there_after_a_restart(
    store_url: str,
) -> None:
    async with running(store_url=store_url) as rig:
        event = await rig.schedule("web-0", notice="1h")
        token = await rig.post("/tokens", {"name": "ci", "role": "viewer"}, 201)
        rollout = await rig.post("/rollouts", {"type": "Reboot", "scopes": ["workers"]}, 201)
        target = {"name": "ops", "kind": "webhook", "url": "http://127.0.0.1:9/x"}
        await rig.post("/notifications", target, 201)
        before = await rig.get("/history", limit=500)
    async with running(store_url=store_url) as rig:
        assert (await rig.get(f"/events/{event['id']}"))["phase"] == "scheduled"
        me = await rig.api.get("/me", headers={"Authorization": f"Bearer {token['secret']}"})
        assert me.json()["name"] == "ci"
        assert (await rig.get(f"/rollouts/{rollout['id']}"))["phase"] == "running"
        (shown,) = (await rig.get("/notifications"))["notifications"]
        assert shown["name"] == "ops"
        assert await _older(rig, before["entries"][0]["position"]) == before["entries"][1:]


async def _older(rig: Rig, position: str) -> list[object]:
    found = (await rig.get("/history", after=position, limit=500))["entries"]
    assert isinstance(found, list)
    return found
