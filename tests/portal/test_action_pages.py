"""What the other pages' forms do: no more than was chosen, and only for whom it is allowed."""

import csv
import html
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.server import Tls
from fairwarning.portal.routes import PAGES
from tests.operator_api.rig import ME, Rig, running
from tests.operator_api.test_auth import make_certificate
from tests.portal.reader import Reader, part, reading
from tests.support.http_client import http_client

_HIDDEN = re.compile(r'type="hidden" name="([^"]+)" value="([^"]*)"')


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


@pytest.fixture
async def reader(rig: Rig) -> AsyncIterator[Reader]:
    async with reading(rig) as found:
        yield found


async def form_key(reader: Reader, page: str = "/") -> dict[str, str]:
    found = re.search(r'name="form_key" value="([0-9a-f]+)"', (await reader.client.get(page)).text)
    assert found is not None
    return {"form_key": found[1]}


async def workers(rig: Rig) -> Any:
    return await rig.get("/scopes/workers")


async def test_what_was_done_is_said_once(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("db", duration="1h")
    assert "has started" in await reader.send("/", f"/events/{event['id']}/approve")
    assert "has started" not in await reader.see("/")


async def test_a_policy_is_what_is_ticked_and_nothing_else(rig: Rig, reader: Reader) -> None:
    id = (await workers(rig))["id"].removesuffix("/0")
    path = f"/scale-sets/{id}/policy"
    for ticked in ("approveUserReboot", "approveUserRedeploy", "approveAllInstancesDown"):
        await reader.send(f"/scale-sets/{id}", path, **{ticked: "1"})
        policy = (await workers(rig))["policy"]
        assert [name for name, value in policy.items() if value is True] == [ticked]


async def test_a_notice_is_changed_and_switched_off(rig: Rig, reader: Reader) -> None:
    id = (await workers(rig))["id"].removesuffix("/0")
    page, path = f"/scale-sets/{id}", f"/scale-sets/{id}/termination"
    await reader.send(page, path, termination="on", delay="9")
    assert (await workers(rig))["terminateNotice"] == "PT9M"
    await reader.send(page, path, termination="off", delay="9")
    assert (await workers(rig))["terminateNotice"] is None


async def test_only_who_was_chosen_is_brought_up_to_date(rig: Rig, reader: Reader) -> None:
    id = (await workers(rig))["id"].removesuffix("/0")
    page, path = f"/scale-sets/{id}", f"/scale-sets/{id}/upgrade"
    await reader.send(page, f"/scale-sets/{id}/termination", termination="on", delay="9")

    async def behind() -> list[str]:
        found = (await workers(rig))["instances"]
        return [each["name"] for each in found if not each["latestModelApplied"]]

    await reader.send(page, path)
    assert await behind() == ["workers_0", "workers_1", "workers_2"], "nobody was chosen"
    await reader.send(page, path, instance="workers_1")
    assert await behind() == ["workers_0", "workers_2"]
    await reader.send(page, path, all="1", instance="workers_0")
    assert await behind() == []


async def make(reader: Reader, **fields: str) -> None:
    """Send the form, and then the form of its review."""
    page = (await reader.client.get("/scale-sets/new")).text
    key = re.search(r'name="form_key" value="([^"]*)"', page)
    assert key is not None
    review = await reader.client.post("/scale-sets/new/review", data={"form_key": key[1], **fields})
    assert review.status_code == 200, review.text
    hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', review.text))
    made = await reader.client.post("/scale-sets/new", data=hidden)
    assert made.status_code == 303, made.text


async def test_a_new_set_is_as_its_form_says(rig: Rig, reader: Reader) -> None:
    fields = {"name": "more", "capacity": "2", "orchestration": "flexible", "priority": "Regular",
              "update_domains": "3", "termination": "on", "delay": "7"}  # fmt: skip
    await make(reader, **fields, test="1")
    found = await rig.get("/scopes/more")
    assert (found["orchestration"], found["updateDomains"]) == ("flexible", 3)
    assert (found["terminateNotice"], found["test"]) == ("PT7M", True)
    await make(reader, **{**fields, "name": "real"})
    assert (await rig.get("/scopes/real"))["test"] is False


async def deeds(reader: Reader, scope: str, name: str) -> set[str]:
    page = await reader.see(f"/instances/{scope}/{name}")
    return set(re.findall(r'name="kind" value="(\w+)"', page))


async def test_an_instance_offers_what_can_be_done_to_it(rig: Rig, reader: Reader) -> None:
    await rig.post("/fleet", {"vm": [{"name": "cheap", "priority": "Spot"}]})
    db, cheap = [(await rig.get(f"/scopes/vm/{name}"))["id"] for name in ("db", "cheap")]
    running = {"restart", "redeploy", "reimage", "delete", "stop", "deallocate"}
    assert await deeds(reader, db, "db") == running
    assert await deeds(reader, cheap, "cheap") == {*running, "evict"}
    page = f"/instances/{db}/db"
    await reader.send(page, f"{page}/do", kind="stop")
    await rig.post("/clock/advance", {"by": "1m"})
    assert (await rig.get("/instances/db"))["power"] == "stopped"
    assert await deeds(reader, db, "db") == {"restart", "redeploy", "reimage", "delete", "start"}


async def previewed(rig: Rig, reader: Reader, **fields: Any) -> dict[str, Any]:
    """The form that announces what the preview shows."""
    sent = {**await form_key(reader, "/plan"), "type": "Reboot", **fields}
    page = await reader.client.post("/plan", data=sent)
    assert page.status_code == 200, page.text
    form = re.search(r'action="/plan/announce".*?</form>', page.text, re.S)
    assert form is not None
    found: dict[str, Any] = {}
    for name, value in _HIDDEN.findall(form[0]):
        found.setdefault(name, []).append(html.unescape(value))
    return found


async def test_what_is_announced_is_what_was_previewed(rig: Rig, reader: Reader) -> None:
    scopes = [(await rig.get(f"/scopes/{name}"))["id"] for name in ("web", "workers")]
    form = await previewed(
        rig, reader, scope=scopes, notice="20m", scopes_at_once="2", day=["mon", "tue"],
        time_zone="Asia/Tokyo", blackouts="2030-01-01, 2030-01-02",
        **{"from": "01:00", "to": "05:00"},
    )  # fmt: skip
    assert (await rig.get("/rollouts"))["rollouts"] == []
    answer = await reader.client.post("/plan/announce", data={**form, "change": "1"})
    assert (answer.status_code, 'value="20m"' in answer.text) == (200, True)
    assert (await rig.get("/rollouts"))["rollouts"] == []
    answer = await reader.client.post("/plan/announce", data=form)
    assert answer.status_code == 303, answer.text
    made = await rig.get(answer.headers["location"])
    assert sorted({each["scope"] for each in made["steps"]}) == sorted(scopes)
    assert (made["notice"], made["scopesAtOnce"], made["stopOnFailure"]) == ("PT20M", 2, False)
    (window,) = made["windows"]
    assert (window["days"], window["from"], window["to"]) == (["mon", "tue"], "01:00", "05:00")
    assert (made["timeZone"], made["blackouts"]) == ("Asia/Tokyo", ["2030-01-01", "2030-01-02"])
    await decided(rig, reader, answer.headers["location"])


async def test_a_plan_that_is_refused_keeps_its_form_and_says_why(rig: Rig, reader: Reader) -> None:
    scope = (await rig.get("/scopes/web"))["id"]
    sent = {**await form_key(reader, "/plan"), "type": "Reboot", "scope": scope, "notice": "20m"}
    answer = await reader.client.post("/plan", data={**sent, "time_zone": "Mars/North"})
    page = html.unescape(answer.text)
    assert "Mars/North" in page
    assert 'class="said failed"' in page
    assert 'value="20m"' in page, "the form keeps what was written"


async def decided(rig: Rig, reader: Reader, page: str) -> None:
    """A rollout is paused, resumed and cancelled."""
    for verb, phase in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        await reader.send(page, f"{page}/{verb}")
        assert (await rig.get(page))["phase"] == phase


async def test_a_rollout_stops_on_a_failure_if_that_is_ticked(rig: Rig, reader: Reader) -> None:
    hours = {"from": "01:00", "to": "05:00"}
    form = await previewed(rig, reader, scope="web", stop_on_failure="1", **hours)
    answer = await reader.client.post("/plan/announce", data=form)
    made = await rig.get(answer.headers["location"])
    assert made["stopOnFailure"] is True
    assert len(made["windows"]) == 1, "hours alone are a window of every day"


async def test_a_token_has_the_role_and_the_end_that_were_chosen(rig: Rig, reader: Reader) -> None:
    sent = {**await form_key(reader, "/settings"), "name": "ada", "role": "approver"}
    page = await reader.client.post("/settings/tokens", data={**sent, "expires": "1h"})
    secret = re.search(r"fw_[^<\s]+", page.text)
    assert secret is not None
    tokens = Tokens(rig.node.store, rig.node.clock)
    assert await tokens.valid(secret[0]) is not None
    (token,) = (await rig.get("/tokens"))["tokens"]
    assert (token["name"], token["role"]) == ("ada", "approver")
    await rig.post("/clock/advance", {"by": "61m"})
    assert await tokens.valid(secret[0]) is None
    await reader.send("/settings", f"/settings/tokens/{token['id']}/revoke")
    assert (await rig.get("/tokens"))["tokens"] == []


async def test_a_field_that_is_left_empty_says_nothing(rig: Rig, reader: Reader) -> None:
    """A browser sends it all the same."""
    sent = {**await form_key(reader, "/settings"), "name": "ada", "role": "viewer", "expires": " "}
    page = await reader.client.post("/settings/tokens", data=sent)
    assert re.search(r"fw_[^<\s]+", page.text) is not None
    (token,) = (await rig.get("/tokens"))["tokens"]
    assert token.get("expires") is None


async def test_a_notification_that_does_not_arrive_is_told_with_its_reason(
    rig: Rig, reader: Reader
) -> None:
    target = {"name": "hook", "kind": "webhook", "url": "http://127.0.0.1:9/"}
    made = await rig.post("/notifications", target, 201)
    said = await reader.send("/settings", f"/settings/notifications/{made['id']}/test")
    assert "no connection" in said


async def table(reader: Reader, **query: str) -> list[dict[str, str]]:
    answer = await reader.client.get("/history.csv", params=query)
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text)))


async def test_a_table_has_all_of_the_history_and_no_formula(
    rig: Rig, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.portal.pages.history.CSV_PAGE", 2)
    event = await rig.schedule("db")
    await rig.post(f"/events/{event['id']}/approve?why=-1%2B2")
    await rig.post("/clock/advance", {"by": "5m"})
    await rig.schedule("web-0")
    entries = (await rig.get("/history", limit=500))["entries"]
    assert len(entries) > 4
    assert [each["text"] for each in await table(reader)] == [each["text"] for each in entries]
    own = await table(reader, event=event["id"])
    assert 2 < len(own) < len(entries)
    assert {each["event"] for each in own} == {event["id"]}
    assert "'-1+2" in [each["why"] for each in own]


async def test_a_fleet_is_shown_page_by_page(
    rig: Rig, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.portal.pages.fleet.RESOURCES_SHOWN", 1)
    seen: list[str] = []
    page = "/fleet"
    while page and len(seen) <= 3:
        text = await reader.see(page)
        seen += re.findall(r'<th scope="row"><a href="[^"]*">([^<]+)</a>', text)
        onward = re.search(r'href="([^"]+)">Next page', text)
        page = onward[1] if onward else ""
    assert sorted(seen) == ["db", "web", "workers"]


async def test_while_the_store_is_down_no_list_looks_empty(
    rig: Rig, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: Any, **__: Any) -> Any:
        raise StoreDown("switched off by the test")

    await rig.schedule("db")
    monkeypatch.setattr(rig.node.store, "events", down)
    await reader.see("/events", 503)


async def test_what_runs_unannounced_is_under_way_and_asks_nobody(rig: Rig, reader: Reader) -> None:
    first = await rig.schedule("db", type="Freeze", duration="1h")
    await rig.post(f"/events/{first['id']}/approve")
    second = await rig.post("/instances/db/restart", {}, 202)
    assert not second["announced"]
    asking, under_way = part(await reader.see("/"), "pending").split("under-way-title", 1)
    assert second["id"] not in asking
    assert second["id"] in under_way


async def test_a_viewer_changes_nothing_with_any_form(tmp_path: Path) -> None:
    certificate, key, _ = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        _, admin = await tokens.create("root", Role.ADMIN, None, by=ME, why="")
        rig.api.headers["authorization"] = f"Bearer {admin}"
        token, secret = await tokens.create("ada", Role.VIEWER, None, by=ME, why="")
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        async with http_client(url) as client:
            await client.post("/login", data={"token": secret})
            reader = Reader(client)
            own = await form_key(reader)
            rig.api.base_url = f"{url}/api/v1"
            event = await rig.schedule("workers_0")
            before = await everything(rig)
            for path in filled(event["id"], (await workers(rig))["id"], token.id):
                sent = {**own, **FIELDS}
                answer = await client.post(path, data=sent)
                assert answer.status_code in (303, 422, 200), (path, answer.text)
                assert await everything(rig) == before, path
            settings = await reader.see("/settings")
            assert "Make a token" not in settings
            page = f"/instances/{(await workers(rig))['id']}/workers_0"
            assert await deeds(reader, (await workers(rig))["id"], "workers_0") == set(), page


FIELDS = {
    "notice": "2h", "capacity": "1", "termination": "off", "all": "1", "kind": "delete",
    "name": "eve", "role": "admin", "scope": "web", "type": "Reboot", "by": "1h",
    "orchestration": "uniform", "priority": "Regular", "update_domains": "5",
    "scenario": "neighbour",
}  # fmt: skip
"""Whatever one of the forms needs."""


def filled(event: str, scope: str, token: str) -> list[str]:
    """Where forms are sent to, of things that are there."""
    values = {"{scope:path}": scope, "{instance:path}": f"{scope}/workers_0", "{verb}": "cancel"}
    found = []
    for page in PAGES:
        if not page.sends:
            continue
        values["{id}"] = token if page.path.startswith("/settings") else event
        path = page.path
        for name, value in values.items():
            path = path.replace(name, value)
        found.append(path)
    return found


async def everything(rig: Rig) -> list[Any]:
    store = rig.node.store
    scopes = await store.scopes(limit=99)
    tokens = [each["name"] for each in (await rig.get("/tokens"))["tokens"]]
    rollouts = (await rig.get("/rollouts"))["rollouts"]
    return [scopes, tokens, rollouts, rig.node.faults.list(), rig.clock.now()]


async def test_the_history_is_shown_page_by_page_with_its_filter(
    rig: Rig, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.portal.pages.history.ENTRIES_SHOWN", 2)
    first = await rig.schedule("db")
    await rig.schedule("web-0")
    await rig.post(f"/events/{first['id']}/approve")
    wanted = (await rig.get("/history", event=first["id"]))["entries"]
    assert len(wanted) > 2
    shown, pages = 0, ""
    page = f"/history?event={first['id']}"
    while page:
        text = await reader.see(page)
        rows = text.count(f'<a href="/events/{first["id"]}">')
        assert rows == min(2, len(wanted) - shown)
        shown, pages = shown + rows, pages + text
        onward = re.search(r'href="([^"]+)">Next page', text)
        page = onward[1] if onward else ""
    assert shown == len(wanted)
    # Times within a text are marked, because they are shown in the reader's zone.
    beginnings = [each["text"].partition(" for 20")[0] for each in wanted]
    places = [pages.find(html.escape(each)) for each in beginnings]
    assert -1 not in places
    assert places == sorted(places)
    assert "no-such-scope" in await reader.see("/history?scope=no-such-scope", 404)


async def test_rollouts_are_listed_with_how_far_they_are(
    rig: Rig, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.portal.pages.rollouts.ROLLOUTS_SHOWN", 1)
    for scope in ("web", "workers"):
        await rig.post("/rollouts", {"type": "Reboot", "scopes": [scope]}, 201)
    listed = [each["id"] for each in (await rig.get("/rollouts"))["rollouts"]]
    text = await reader.see("/rollouts")
    assert [each for each in listed if each in text] == listed[:1]
    onward = re.search(r'href="([^"]+)">Next page', text)
    assert onward is not None
    assert listed[1] in await reader.see(f"/rollouts{onward[1]}")


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", b"{}", 415),
        ("application/x-www-form-urlencoded", b"a=%ff", 400),
        ("application/x-www-form-urlencoded", b"a=\xff", 400),
        ("application/x-www-form-urlencoded", b"&".join([b"a=b"] * 2_001), 400),
    ],
)
async def test_what_is_no_form_is_refused(
    reader: Reader, content_type: str, body: bytes, status: int
) -> None:
    for page in ("/rehearse/clock", "/rollouts/x/pause"):
        answer = await reader.client.post(
            page, content=body, headers={"content-type": content_type}
        )
        assert answer.status_code == status
        assert "<html" in answer.text


async def test_an_approved_event_that_waits_for_another_says_that_it_waits(
    rig: Rig, reader: Reader
) -> None:
    await rig.schedule("web-0", duration="1h")
    event = await rig.schedule("web-1", duration="1h")
    first, second = [each["id"] for each in (await rig.get("/events"))["events"]]
    assert "has started" in await reader.send("/", f"/events/{first}/approve")
    said = await reader.send(f"/events/{second}", f"/events/{second}/approve")
    assert "has started" not in said
    assert (await rig.get(f"/events/{second}"))["phase"] == "scheduled"
    assert event["id"] in (first, second)
