"""The same request twice is done once."""

import asyncio
from typing import Any

import msgspec
import pytest

from fairwarning.core.instants import HOUR_MS, Instant, later
from fairwarning.core.model import ENGINE
from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api.app import ROUTES
from fairwarning.operator_api.idempotency import KIND, Kept
from tests.operator_api.rig import Block, Rig

BODY = {"type": "Reboot", "targets": ["web-0"]}
ID = "11111111-2222-4333-8444-555555555555"
# Every POST that changes something: path, body, status. What one transaction does is found
# again by whoever takes its key over; of the others nobody can say how much was done.
ONE_STEP: list[tuple[str, Any, int]] = [
    ("/events", BODY, 201),
    ("/events", {**BODY, "id": ID}, 201),
    ("/events/{event}/approve", None, 200),
    ("/events/{event}/cancel", None, 200),
    ("/events/{event}/postpone", {"notice": "2h"}, 201),
    *(
        (f"/instances/{name}/{verb}", None, 202)
        for name, verb in (
            ("web-1", "restart"),
            ("web-1", "redeploy"),
            ("workers_0", "delete"),
            ("web-1", "start"),
            ("web-1", "stop"),
            ("web-1", "deallocate"),
            ("web-1", "reimage"),
            ("spot", "evict"),
        )
    ),
    ("/rollouts", {"type": "Reboot", "scopes": ["web"]}, 201),
    ("/rollouts/{rollout}/pause", None, 200),
    ("/rollouts/{rollout}/resume", None, 200),
    ("/rollouts/{rollout}/cancel", None, 200),
    ("/clock/advance", {"by": "1m"}, 200),
]
SECRET: list[tuple[str, Any, int]] = [("/tokens", {"name": "ci", "role": "viewer"}, 201)]
SECRET_STEPS: list[tuple[str, Any, int]] = [
    ("/notifications", {"name": "hook", "kind": "webhook", "url": "http://127.0.0.1:9/"}, 201),
]
SEVERAL_STEPS: list[tuple[str, Any, int]] = [
    ("/fleet", {"vm": [{"name": "mail"}]}, 200),
    ("/scopes/workers/scale", {"capacity": 4}, 202),
    ("/scopes/workers/model", {"terminateNotice": "PT6M"}, 200),
    ("/scopes/workers/upgrade", None, 200),
    ("/scopes/workers/policy", {}, 200),
    ("/instances/workers_0/replace", None, 202),
    ("/faults", {"kind": "status"}, 201),
    ("/notifications/{target}/test", None, 200),
]
NOTHING_STORED: list[tuple[str, Any, int]] = [("/requests/watch", None, 200)]
NOT_TRIED = {"/notifications/dead-letters/{id}/retry"}
"""A dead letter needs a target that fails for hours: see tests/notifications."""


def by_path(cases: list[tuple[str, Any, int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("path", "body", "status"), cases, ids=[c[0] for c in cases])


async def prepared(rig: Rig, path: str) -> str:
    """The path, with what it names made before."""
    if "spot" in path:
        spot = {"name": "spot", "priority": "Spot", "eviction": "Delete"}
        await rig.post("/fleet", {"vm": [spot]})
    if path.endswith("/upgrade"):
        await rig.post("/scopes/workers/model", {"terminateNotice": "PT7M"})
    made = {}
    if "{event}" in path:
        made["event"] = (await rig.schedule("web-1", duration="1h"))["id"]
    if "{rollout}" in path:
        spec = {"type": "Reboot", "scopes": ["web"]}
        made["rollout"] = (await rig.post("/rollouts", spec, 201))["id"]
    if "{target}" in path:
        made["target"] = (await rig.post(*SECRET_STEPS[0]))["id"]
    return path.format(**made)


async def lose_answer(rig: Rig) -> None:
    """As a crash between the change and the answer leaves the key."""
    (record,) = await rig.node.store.records(KIND, limit=9)
    kept = msgspec.json.decode(record.body, type=Kept)
    lost = msgspec.structs.replace(kept, status=0, body="", owner="dead", until_ms=Instant(2**50))
    body = msgspec.json.encode(lost).decode()
    await rig.node.store.keep(KIND, record.key, body, by=ENGINE)


async def done(rig: Rig) -> list[str]:
    """What the history says, but for what time does."""
    entries = (await rig.get("/history", limit=500))["entries"]
    return [each["kind"] for each in entries if each["by"].startswith("operator:")]


def test_every_post_is_in_one_of_the_lists_above() -> None:
    """A new one has to be thought about: what if it breaks off half-way, and comes again?"""
    shown = {
        (each.path, each.is_in_steps or each.is_outward, each.is_secret)
        for each in ROUTES
        if each.method == "POST" and not each.is_preview
    }
    names = {"{event}": "{id}", "{rollout}": "{id}", "{target}": "{id}"}
    named = {"web-1", "workers_0", "spot"}

    def pattern(path: str) -> str:
        for name, shown_name in names.items():
            path = path.replace(name, shown_name)
        for name in named:
            path = path.replace(f"/instances/{name}/", "/instances/{instance:path}/")
        return path.replace("/scopes/workers/", "/scopes/{scope:path}/")

    listed = {(pattern(path), False, False) for path, _, _ in ONE_STEP + NOTHING_STORED}
    listed |= {(pattern(path), True, False) for path, _, _ in SEVERAL_STEPS}
    listed |= {(path, True, False) for path in NOT_TRIED}
    listed |= {(path, False, True) for path, _, _ in SECRET}
    listed |= {(path, True, True) for path, _, _ in SECRET_STEPS}
    assert shown == listed


@by_path(ONE_STEP + SEVERAL_STEPS + NOTHING_STORED)
async def test_a_key_gets_the_first_answer_again(
    rig: Rig, path: str, body: Any, status: int
) -> None:
    path = await prepared(rig, path)
    named = {"Idempotency-Key": "a"}
    first = await rig.api.post(path, json=body, headers=named)
    before = await done(rig)
    again = await rig.api.post(path, json=body, headers=named)
    assert again.status_code == first.status_code == status, first.text
    assert again.content == first.content
    assert "idempotent-replay" not in first.headers
    assert again.headers["idempotent-replay"] == "true"
    assert await done(rig) == before


@by_path(ONE_STEP)
async def test_whoever_takes_a_key_over_says_what_was_done_and_does_it_no_more(
    rig: Rig, path: str, body: Any, status: int
) -> None:
    path = await prepared(rig, path)
    first = await rig.post(path, body, status, idempotency_key="a")
    before, now = await done(rig), rig.clock.now()
    await lose_answer(rig)
    again = await rig.post(path, body, status, idempotency_key="a")
    assert again.get("id") == first.get("id")
    assert (await done(rig), rig.clock.now()) == (before, now)
    assert await rig.post(path, body, status, idempotency_key="a") == again


@by_path(SEVERAL_STEPS)
async def test_of_what_takes_several_steps_nothing_more_is_done_after_it_broke_off(
    rig: Rig, path: str, body: Any, status: int
) -> None:
    path = await prepared(rig, path)
    await rig.post(path, body, status, idempotency_key="a")
    before = await done(rig)
    await lose_answer(rig)
    for _ in range(2):
        problem = await rig.post(path, body, 409, idempotency_key="a")
        assert problem["code"] == "request-broke-off"
    assert await done(rig) == before


@by_path(SECRET + SECRET_STEPS)
async def test_a_secret_is_never_given_out_a_second_time(
    rig: Rig, path: str, body: Any, status: int
) -> None:
    made = await rig.post(path, body, status, idempotency_key="a")
    before = await done(rig)
    for loses in (False, True):
        (record,) = await rig.node.store.records(KIND, limit=10)
        assert made["secret"] not in record.body
        if loses:
            await lose_answer(rig)
        problem = await rig.post(path, body, 409, idempotency_key="a")
        is_doubtful = loses and (path, body, status) in SECRET_STEPS
        assert problem["code"] == ("request-broke-off" if is_doubtful else "secret-was-shown")
        assert made["secret"] not in str(problem)
    assert await done(rig) == before


async def test_a_key_stands_for_one_request(rig: Rig) -> None:
    fleet = {"vm": [{"name": "mail"}]}
    first = await rig.post("/fleet", fleet, idempotency_key="a")
    for path, body in (
        ("/fleet", {"vm": [{"name": "mail"}, {"name": "ftp"}]}),
        ("/fleet?force=true", fleet),
        ("/fleet?why=because", fleet),
        ("/scopes/workers/policy", {}),
    ):
        problem = await rig.post(path, body, 422, idempotency_key="a")
        assert problem["code"] == "idempotency-key-reused", path
    assert await rig.post("/fleet", fleet, idempotency_key="a") == first


async def test_a_key_stands_for_one_request_also_if_only_the_path_says_which(rig: Rig) -> None:
    await rig.post("/instances/web-0/stop", status=202, idempotency_key="a")
    for path in ("/instances/web-1/stop", "/instances/web-0/start", "/instances/web-0%2F/stop"):
        problem = await rig.post(path, status=422, idempotency_key="a")
        assert problem["code"] == "idempotency-key-reused", path
    assert len((await rig.get("/events"))["events"]) == 1


async def test_a_key_is_its_callers_own(rig: Rig) -> None:
    made = [
        (await rig.post("/tokens", {"name": name, "role": "operator"}, 201))["secret"]
        for name in ("eva", "max")
    ]
    found = []
    for secret in made:
        named = {"idempotency_key": "a", "authorization": f"Bearer {secret}"}
        found.append(await rig.post("/events", {**BODY, "targets": ["db"]}, 201, **named))
        await rig.post(f"/events/{found[-1]['id']}/cancel")
    assert found[0]["id"] != found[1]["id"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
async def test_what_is_no_key_is_refused(rig: Rig, key: str) -> None:
    problem = await rig.post("/events", BODY, 422, idempotency_key=key)
    assert problem["code"] == "idempotency-key-invalid"
    assert (await rig.get("/events"))["events"] == []


@pytest.mark.parametrize("key", ["!", "~", "x" * 255, '"quoted"'])
async def test_what_is_just_a_key_is_taken(rig: Rig, key: str) -> None:
    first = await rig.post("/events", BODY, 201, idempotency_key=key)
    assert await rig.post("/events", BODY, 201, idempotency_key=key) == first


async def test_keys_differ_in_case(rig: Rig) -> None:
    body = {"vm": [{"name": "mail"}]}
    await rig.post("/fleet", body, idempotency_key="a")
    await rig.post("/scopes/workers/policy", {}, idempotency_key="A")


async def test_only_what_changes_something_uses_a_key_up(rig: Rig) -> None:
    plan = {"type": "Reboot", "scopes": ["web"]}
    await rig.post("/rollouts/plan", plan, idempotency_key="a")
    named = {"Idempotency-Key": "a"}
    await rig.api.get("/events", headers=named)
    await rig.api.put("/fleet", json={}, headers=named)
    await rig.api.delete("/faults", headers=named)
    assert await rig.node.store.records(KIND, limit=9) == []


async def test_an_id_that_another_event_has_is_refused_under_a_new_key_too(rig: Rig) -> None:
    await rig.schedule("web-0", id=ID)
    other = {"type": "Freeze", "targets": ["db"], "id": ID}
    for key in ("n", "n", "m"):
        problem = await rig.post("/events", other, 409, idempotency_key=key)
        assert problem["code"] == "event-id-used"


async def test_a_refused_request_may_be_tried_again_under_its_key(rig: Rig) -> None:
    early = {**BODY, "targets": ["db-2"]}
    await rig.post("/events", early, 404, idempotency_key="a")
    await rig.post("/events", early, 404, idempotency_key="a")
    await rig.post("/events", BODY, 201, idempotency_key="a")


async def test_a_refusal_is_told_also_if_its_key_cannot_be_released(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def drop(*_: Any, **__: Any) -> bool:
        raise StoreDown("switched off by the test")

    monkeypatch.setattr(rig.node.store, "drop", drop)
    problem = await rig.post("/events", {**BODY, "targets": ["db-2"]}, 404, idempotency_key="a")
    assert "db-2" in problem["detail"]


async def test_a_second_one_waits_however_long_the_first_takes(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of virtual time passes, and a day of the one on the wall could."""
    block = Block(monkeypatch, rig.node.store, "history")
    first = asyncio.create_task(rig.post("/events", BODY, 201, idempotency_key="a"))
    await block.reached.wait()
    await rig.clock.advance(3_600_000)
    problem = await rig.post("/events", BODY, 409, idempotency_key="a")
    assert problem["code"] == "idempotency-in-progress"
    block.open()
    made = await first
    assert await rig.post("/events", BODY, 201, idempotency_key="a") == made


async def test_two_at_once_make_one_event(rig: Rig) -> None:
    answers = await asyncio.gather(
        *(rig.api.post("/events", json=BODY, headers={"Idempotency-Key": "a"}) for _ in range(5))
    )
    assert {each.status_code for each in answers} <= {201, 409}
    assert len((await rig.get("/events"))["events"]) == 1


@pytest.mark.parametrize("is_late", [False, True])
async def test_after_an_outage_the_next_try_need_not_wait(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """Whether the first was done or not."""
    store = rig.node.store
    real = store.transact

    async def transact(*args: Any, **named: Any) -> Any:
        if is_late:
            await real(*args, **named)
        raise StoreDown("switched off by the test")

    with monkeypatch.context() as outage:
        outage.setattr(store, "transact", transact)
        await rig.post("/events", BODY, 503, idempotency_key="a")
    made = await rig.post("/events", BODY, 201, idempotency_key="a")
    assert [each["id"] for each in (await rig.get("/events"))["events"]] == [made["id"]]


async def test_an_answer_that_could_not_be_kept_is_not_given(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next one would be carried out again, or be told something else."""
    store = rig.node.store
    real = store.keep

    async def keep(kind: str, key: str, body: str, **named: Any) -> Any:
        if kind == KIND and '"status":201' in body:
            raise StoreDown("switched off by the test")
        return await real(kind, key, body, **named)

    with monkeypatch.context() as outage:
        outage.setattr(store, "keep", keep)
        await rig.post("/events", BODY, 503, idempotency_key="a")
    made = await rig.post("/events", BODY, 201, idempotency_key="a")
    assert [each["id"] for each in (await rig.get("/events"))["events"]] == [made["id"]]


async def test_two_keys_are_refused(rig: Rig) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = await rig.api.post("/events", json=BODY, headers=headers)
    assert Rig.check(answer, 422)["code"] == "idempotency-key-invalid"
    assert (await rig.get("/events"))["events"] == []


async def test_a_token_does_not_get_the_answers_of_another_that_had_its_name(rig: Rig) -> None:
    found = []
    for _ in range(2):
        made = await rig.post("/tokens", {"name": "ci", "role": "operator"}, 201)
        headers = {"Authorization": f"Bearer {made['secret']}", "Idempotency-Key": "k"}
        body = {"type": "Freeze", "targets": ["db"]}
        found.append(await rig.api.post("/events", json=body, headers=headers))
        await rig.delete(f"/tokens/{made['id']}")
    assert found[0].status_code == 201
    assert "Idempotent-Replay" not in found[1].headers
    assert found[1].text != found[0].text


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/instances/workers_1/delete", None, 202),
        ("/instances/spot/evict", None, 202),
        ("/events", {**BODY, "targets": ["workers_1"]}, 201),
        ("/events", {"type": "Reboot", "scope": "db", "updateDomain": 0}, 201),
    ],
    ids=["delete", "evict", "targets", "update-domain"],
)
async def test_what_was_done_is_said_also_when_its_instances_are_gone(
    rig: Rig, path: str, body: Any, status: int
) -> None:
    path = await prepared(rig, path)
    made = await rig.post(path, body, status, idempotency_key="a")
    await rig.post("/clock/advance", {"by": "10m"})
    for gone in ("/scopes/workers", "/scopes/db"):
        await rig.delete(gone, force="true")
    await lose_answer(rig)
    again = await rig.post(path, body, status, idempotency_key="a")
    assert again["id"] == made["id"]
    assert again["phase"] in ("completed", "cancelled")


async def test_a_target_of_notifications_that_was_not_made_shows_no_secret(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, body, _ = SECRET_STEPS[0]
    store = rig.node.store
    real = store.keep

    async def keep(kind: str, key: str, text: str, **named: Any) -> Any:
        if kind == "notification-target":
            raise StoreDown("switched off by the test")
        return await real(kind, key, text, **named)

    with monkeypatch.context() as outage:
        outage.setattr(store, "keep", keep)
        await rig.post(path, body, 503, idempotency_key="a")
    problem = await rig.post(path, body, 409, idempotency_key="a")
    assert problem["code"] == "request-broke-off"
    assert (await rig.get("/notifications"))["notifications"] == []
    await rig.post(path, body, 201, idempotency_key="b")


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("keys", ["a", "aa", "aba", "ba", "bab"])
async def test_a_clock_is_advanced_once_under_a_key_whatever_the_store_loses(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, keys: str, is_late: bool
) -> None:
    store, began = rig.node.store, rig.clock.now()
    real = store.keep

    async def keep(kind: str, key: str, body: str, **named: Any) -> Any:
        if kind == KIND:
            return await real(kind, key, body, **named)
        if is_late:
            await real(kind, key, body, **named)
        raise StoreDown("switched off by the test")

    hour = {"by": "1h"}
    with monkeypatch.context() as outage:
        outage.setattr(store, "keep", keep)
        await rig.post("/clock/advance", hour, 503, idempotency_key="a")
    assert rig.clock.now() == began
    for key in keys:
        await rig.post("/clock/advance", hour, idempotency_key=key)
    assert rig.clock.now() == later(began, len(set(keys)) * HOUR_MS)


async def test_a_clock_that_cannot_be_advanced_so_far_leaves_its_key_as_new(rig: Rig) -> None:
    for _ in range(2):
        problem = await rig.post("/clock/advance", {"by": "4000d"}, 422, idempotency_key="a")
        assert problem["code"] == "duration-invalid"
