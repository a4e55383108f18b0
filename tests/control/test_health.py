"""What a monitoring system sees."""

import re

import httpx

from tests.control.rig import Rig


def value(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (.*)$", text, re.MULTILINE)
    assert found is not None, f"{name} is not in\n{text}"
    return float(found[1])


async def metrics(rig: Rig) -> str:
    async with httpx.AsyncClient() as client:
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
    async with httpx.AsyncClient(base_url=rig.node.control_url) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/nothing")).json()["code"] == "no-such-path"
        wrong = await client.delete("/api/v1/events")
        assert wrong.status_code == 405
        assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
