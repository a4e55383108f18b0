"""What a monitoring system sees."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from fairwarning.engine.protocols import StoreCondition, StoreDown
from fairwarning.operator_api import health
from tests.operator_api.rig import Rig, running
from tests.support.http_client import http_client


def value(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (.*)$", text, re.MULTILINE)
    assert found is not None, f"{name} is not in\n{text}"
    return float(found[1])


async def metrics(rig: Rig) -> str:
    async with http_client() as client:
        answer = await client.get(f"{rig.node.control_url}/metrics")
    assert answer.status_code == 200
    return answer.text


async def test_events_approvals_notice_and_deadlines_are_counted(rig: Rig) -> None:
    event = await rig.schedule("db", duration="1h")
    await rig.schedule("web-0")
    await rig.clock.advance(60_000)
    await rig.post(f"/events/{event['id']}/approve")
    text = await metrics(rig)
    assert value(text, 'fairwarning_events{phase="started",type="Reboot"}') == 1
    assert value(text, 'fairwarning_events{phase="scheduled",type="Reboot"}') == 1
    assert value(text, 'fairwarning_approval_seconds_sum{type="Reboot"}') == 60
    assert value(text, 'fairwarning_notice_seconds_sum{cause="approved",type="Reboot"}') == 60
    deadline = value(text, "fairwarning_next_deadline_timestamp_seconds")
    assert rig.clock.now() / 1000 < deadline < rig.clock.now() / 1000 + 86_400
    assert value(text, "fairwarning_store_transaction_seconds_count") >= 3


async def test_an_event_that_moved_on_is_not_counted_in_its_old_phase(rig: Rig) -> None:
    event = await rig.schedule("db")
    assert value(await metrics(rig), 'fairwarning_events{phase="scheduled",type="Reboot"}') == 1
    await rig.post(f"/events/{event['id']}/cancel")
    assert value(await metrics(rig), 'fairwarning_events{phase="scheduled",type="Reboot"}') == 0


async def test_requests_to_both_planes_are_counted(rig: Rig) -> None:
    await rig.get("/events")
    await rig.document("db")
    text = await metrics(rig)
    asked = 'fairwarning_control_requests_total{method="GET",path="/events",status="200"}'
    assert value(text, asked) == 1
    assert value(text, "fairwarning_metadata_answers_total") == 1


async def test_it_is_ready_while_its_store_answers(rig: Rig) -> None:
    async with http_client(rig.node.control_url) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/nothing")).json()["code"] == "no-such-path"
        wrong = await client.delete("/api/v1/events")
        assert wrong.status_code == 405
        assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


async def test_it_says_what_is_wrong_with_a_store_that_works(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    condition = StoreCondition(warnings=("nothing is heard",))
    async with http_client(rig.node.control_url) as client:
        assert (await client.get("/readyz")).text == "ready\n"
        monkeypatch.setattr(type(rig.node.store), "condition", condition)
        assert (await client.get("/readyz")).text == "ready\nwarning: nothing is heard\n"


async def status(rig: Rig, path: str) -> int:
    async with http_client(rig.node.control_url) as client:
        return (await client.get(path)).status_code


def delete(folder: Path) -> None:
    for each in folder.glob("store.db*"):
        each.unlink()


async def test_it_is_not_ready_when_its_database_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "WRITE_EVERY_S", 0.0)
    file = tmp_path / "store.db"
    async with running(store_url=f"sqlite:///{file}") as rig:
        assert await status(rig, "/readyz") == 200
        delete(tmp_path)
        assert (await rig.api.post("/events", json={"type": "Reboot", "targets": ["db"]})
                ).status_code == 503  # fmt: skip
        assert await status(rig, "/readyz") == 503
        assert await status(rig, "/healthz") == 200
        assert value(await metrics(rig), "fairwarning_store_up") == 0


async def test_it_is_not_ready_when_its_disk_is_full(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def keep(*_: Any, **__: Any) -> None:
        raise StoreDown("the disk is full")

    await rig.schedule("db")
    monkeypatch.setattr(rig.node.store, "keep", keep)
    assert await status(rig, "/readyz") == 503
    text = await metrics(rig)
    assert value(text, "fairwarning_store_up") == 0
    # What can still be read is still told.
    assert value(text, 'fairwarning_events{phase="scheduled",type="Reboot"}') == 1


async def test_many_who_ask_whether_it_is_ready_cost_one_write(rig: Rig) -> None:
    assert {await status(rig, "/readyz") for _ in range(20)} == {200}
    record = await rig.node.store.record(health.KIND, health.KEY)
    assert record is not None
    assert record.revision <= 2


async def test_figures_are_there_when_the_store_is_not(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.schedule("db")
    before = await metrics(rig)
    assert value(before, "fairwarning_store_up") == 1
    assert value(before, "fairwarning_documents_age_seconds") < 60

    async def down(*_: Any, **__: Any) -> None:
        raise StoreDown("away")

    monkeypatch.setattr(rig.node.store, "count_events", down)
    text = await metrics(rig)
    assert value(text, "fairwarning_store_up") == 0
    assert "fairwarning_events{" not in text
    assert value(text, "fairwarning_store_transaction_seconds_count") >= 1
    first = value(text, "fairwarning_documents_age_seconds")
    assert value(await metrics(rig), "fairwarning_documents_age_seconds") > first

    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(rig.node.store, "count_events", hang)
    monkeypatch.setattr(health, "FIGURES_S_MAX", 0.05)
    assert value(await metrics(rig), "fairwarning_store_up") == 0


async def test_a_token_that_was_good_reads_the_figures_while_the_store_is_down(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        await rig.post("/tokens", {"name": name, "role": "viewer"}, 201) for name in ("one", "two")
    ]
    known, unknown = ({"Authorization": f"Bearer {each['secret']}"} for each in made)
    async with http_client(rig.node.control_url) as client:
        assert (await client.get("/metrics", headers=known)).status_code == 200

        async def down(*_: Any, **__: Any) -> None:
            raise StoreDown("away")

        monkeypatch.setattr(rig.node.store, "record", down)
        assert (await client.get("/metrics", headers=known)).status_code == 200
        assert (await client.get("/metrics", headers=unknown)).status_code == 503
        monkeypatch.undo()
        await rig.delete(f"/tokens/{made[0]['id']}")
        assert (await client.get("/metrics", headers=known)).status_code == 401


async def test_a_token_that_was_good_reads_the_figures_while_the_store_hangs(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        await rig.post("/tokens", {"name": name, "role": "viewer"}, 201) for name in ("one", "two")
    ]
    known, unknown = ({"Authorization": f"Bearer {each['secret']}"} for each in made)

    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    async with http_client(rig.node.control_url) as client:
        assert (await client.get("/metrics", headers=known)).status_code == 200
        monkeypatch.setattr(rig.node.store, "record", hang)
        monkeypatch.setattr(health, "FIGURES_S_MAX", 0.05)
        assert (await client.get("/metrics", headers=known)).status_code == 200
        assert (await client.get("/metrics", headers=unknown)).status_code == 503


async def test_of_too_many_readers_the_one_who_stayed_away_longest_is_forgotten(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "READERS_MAX", 2)
    one, two, three = [
        await rig.post("/tokens", {"name": name, "role": "viewer"}, 201)
        for name in ("one", "two", "three")
    ]

    async def down(*_: Any, **__: Any) -> None:
        raise StoreDown("away")

    async with http_client(rig.node.control_url) as client:

        async def ask(token: dict[str, Any]) -> int:
            headers = {"Authorization": f"Bearer {token['secret']}"}
            return (await client.get("/metrics", headers=headers)).status_code

        assert [await ask(each) for each in (one, two, one, three)] == [200] * 4
        monkeypatch.setattr(rig.node.store, "record", down)
        assert [await ask(each) for each in (one, two, three)] == [200, 503, 200]
