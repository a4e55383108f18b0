"""The same request twice is done once."""

import asyncio

import msgspec

from fairwarning.control.housekeeping import forget_old_keys
from fairwarning.control.idempotency import Kept
from fairwarning.core.instants import DAY_MS, later
from fairwarning.core.model import ENGINE
from fairwarning.engine.clocks import SystemClock
from tests.control.rig import Rig

BODY = {"type": "Reboot", "targets": ["web-0"]}


async def test_a_key_gets_the_first_answer_again(rig: Rig) -> None:
    first = await rig.api.post("/events", json=BODY, headers={"Idempotency-Key": "a"})
    again = await rig.api.post("/events", json=BODY, headers={"Idempotency-Key": "a"})
    assert again.status_code == first.status_code == 201
    assert again.content == first.content
    assert again.headers["idempotent-replay"] == "true"
    assert len((await rig.get("/events"))["events"]) == 1


async def test_a_key_stands_for_one_request(rig: Rig) -> None:
    await rig.post("/events", BODY, 201, idempotency_key="a")
    other = {"type": "Freeze", "targets": ["web-0"]}
    problem = await rig.post("/events", other, 422, idempotency_key="a")
    assert problem["code"] == "idempotency-key-reused"


async def test_a_refused_request_may_be_tried_again_under_its_key(rig: Rig) -> None:
    early = {**BODY, "targets": ["db-2"]}
    await rig.post("/events", early, 404, idempotency_key="a")
    await rig.post("/events", early, 404, idempotency_key="a")
    await rig.post("/events", BODY, 201, idempotency_key="a")


async def test_two_at_once_make_one_event(rig: Rig) -> None:
    answers = await asyncio.gather(
        *(rig.api.post("/events", json=BODY, headers={"Idempotency-Key": "a"}) for _ in range(5))
    )
    assert {each.status_code for each in answers} <= {201, 409}
    assert len((await rig.get("/events"))["events"]) == 1


async def test_a_moved_clock_is_not_moved_twice(rig: Rig) -> None:
    first = await rig.post("/clock/advance", {"by": "1h"}, idempotency_key="a")
    again = await rig.post("/clock/advance", {"by": "1h"}, idempotency_key="a")
    assert again == first


async def test_a_secret_is_never_given_out_a_second_time(rig: Rig) -> None:
    body = {"name": "ci", "role": "viewer"}
    made = await rig.post("/tokens", body, 201, idempotency_key="a")
    problem = await rig.post("/tokens", body, 409, idempotency_key="a")
    assert problem["code"] == "secret-was-shown"
    assert made["secret"] not in str(problem)
    for record in await rig.node.store.records("idempotency", limit=10):
        assert made["secret"] not in record.body


async def test_a_key_is_kept_for_a_day_and_then_forgotten(rig: Rig) -> None:
    before = SystemClock().now()
    await rig.post("/events", BODY, 201, idempotency_key="a")
    await forget_old_keys(rig.node.store, later(before, DAY_MS))
    assert len(await rig.node.store.records("idempotency", limit=9)) == 1
    await forget_old_keys(rig.node.store, later(SystemClock().now(), DAY_MS + 1))
    assert await rig.node.store.records("idempotency", limit=9) == []


async def test_a_key_whose_day_is_over_stands_for_new_work(rig: Rig) -> None:
    first = await rig.post("/events", BODY, 201, idempotency_key="a")
    await rig.post(f"/events/{first['id']}/cancel")
    await forget_old_keys(rig.node.store, later(SystemClock().now(), DAY_MS + 1))
    second = await rig.post("/events", BODY, 201, idempotency_key="a")
    assert second["id"] != first["id"]
    assert second["phase"] == "scheduled"


async def test_a_key_that_its_holder_let_go_finds_what_was_made(rig: Rig) -> None:
    made = await rig.post("/events", BODY, 201, idempotency_key="a")
    (record,) = await rig.node.store.records("idempotency", limit=9)
    kept = msgspec.json.decode(record.body, type=Kept)
    lost = msgspec.structs.replace(kept, status=0, body="", is_free=True)
    body = msgspec.json.encode(lost).decode()
    await rig.node.store.keep("idempotency", record.key, body, by=ENGINE)
    again = await rig.post("/events", BODY, 201, idempotency_key="a")
    assert again["id"] == made["id"]
