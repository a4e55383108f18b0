"""Overview, list and page of events over HTTP: what they say, to whom, and what they do."""

import json
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.server import Tls
from tests.operator_api.rig import ME, Rig, running
from tests.operator_api.test_auth import make_certificate
from tests.portal.reader import Reader, part, reading
from tests.support.http_client import http_client
from tests.support.patience import HANG_S


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


@pytest.fixture
async def reader(rig: Rig) -> AsyncIterator[Reader]:
    async with reading(rig) as found:
        yield found


async def test_a_newcomer_gets_commands_that_work_as_pasted(rig: Rig, reader: Reader) -> None:
    page = await reader.see("/")
    url = re.search(r"curl -H Metadata:true '([^']+)'", page)
    assert url is not None
    async with http_client() as machine:
        answer = await machine.get(url[1], headers={"Metadata": "true"})
    assert answer.json()["Events"] == []
    name = url[1].split("/vm/")[1].split("/")[0]
    assert f"FAIRWARNING_URL={rig.node.control_url} fairwarning schedule Reboot {name}" in page
    assert 'href="/plan"' in page
    assert 'href="/rehearse"' in page


async def test_without_a_fleet_the_overview_says_how_to_declare_one(rig: Rig) -> None:
    for name in ("web", "workers", "db"):
        await rig.delete(f"/scopes/{name}")
    async with reading(rig) as reader:
        page = await reader.see("/")
    assert "There is no fleet yet" in page
    assert "fairwarning fleet apply" in page
    assert "curl" not in page


async def test_when_all_is_over_the_overview_says_that_it_is_quiet(
    rig: Rig, reader: Reader
) -> None:
    event = await rig.schedule("db")
    await rig.post(f"/events/{event['id']}/cancel")
    page = await reader.see("/")
    assert "All quiet" in page
    assert "Nothing has been announced yet" not in page


async def test_what_needs_a_person_comes_first_by_time_left(rig: Rig, reader: Reader) -> None:
    late = await rig.schedule("db", notice="5h")
    soon = await rig.schedule("web-0", notice="20m")
    agreed = await rig.schedule("web-1", notice="1h", duration="1h")
    await rig.post(f"/events/{agreed['id']}/approve")
    asking, under_way = part(await reader.see("/"), "pending").split("under-way-title", 1)
    assert asking.index(soon["id"]) < asking.index(late["id"])
    assert agreed["id"] not in asking
    assert agreed["id"] in under_way


async def test_an_approved_event_that_must_wait_is_not_asked_for_again(
    rig: Rig, reader: Reader
) -> None:
    first = await rig.schedule("web-0", duration="1h")
    second = await rig.schedule("web-1")
    for each in (first, second):
        await rig.post(f"/events/{each['id']}/approve")
    asking, under_way = part(await reader.see("/"), "pending").split("under-way-title", 1)
    assert second["id"] not in asking
    assert "waits for its turn" in under_way


async def test_the_timeline_is_a_picture_with_a_name_and_links(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("web-0", notice="2h")
    timeline = part(await reader.see("/"), "timeline")
    picture, below = timeline.split("</svg>")
    assert "Timeline of 1 events in 1 lanes" in picture
    bar = picture.split(f'href="/events/{event["id"]}"')[1]
    assert "<title>Reboot: web-0, Scheduled, not before" in bar.split("</a>")[0]
    assert f'<a href="/fleet/{event["scope"]}">' in picture
    assert '<a href="/events">All events as a table</a>' in below


async def test_the_timeline_is_in_the_readers_zone(rig: Rig, reader: Reader) -> None:
    await rig.schedule("web-0")
    assert "In UTC time" in await reader.see("/")
    assert "In Asia/Tokyo time" in await reader.see("/", Cookie="fairwarning-zone=Asia/Tokyo")
    assert "In UTC time" in await reader.see("/", Cookie="fairwarning-zone=../etc/passwd")


async def test_counts_lead_to_the_events_that_they_count(rig: Rig, reader: Reader) -> None:
    await rig.schedule("web-0")
    await rig.schedule("db", type="Freeze")
    counts = part(await reader.see("/"), "counts")
    assert '<a href="/events?type=Freeze&phase=scheduled">1</a>' in counts
    page = part(await reader.see("/events?type=Freeze&phase=scheduled"), "list")
    assert "db" in page
    assert "web-0" not in page


async def test_a_filter_that_fits_nobody_says_so_and_stays(rig: Rig, reader: Reader) -> None:
    await rig.schedule("web-0")
    page = await reader.see("/events?scope=nosuch")
    assert "there is no scope 'nosuch'" in page
    assert 'value="nosuch"' in page
    assert "No event fits this filter" in await reader.see("/events?instance=db")


async def test_the_list_is_paged_and_keeps_its_filter(
    rig: Rig, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwarning.portal.pages.events.ROWS", 2)
    for name in ("web-0", "web-1", "web-2"):
        await rig.schedule(name)
        await rig.clock.advance(1)
    await rig.schedule("db")
    page = await reader.see("/events?scope=web")
    onward = re.search(r'href="([^"]+)" rel="next"', page)
    assert onward is not None
    second = await reader.see(onward[1])
    assert re.findall(r"<td>(web-\d)</td>", page + second) == ["web-2", "web-1", "web-0"]
    assert 'href="/events?scope=web"' in second


async def test_an_event_tells_its_whole_story_in_order(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("web-0", duration="1m")
    await rig.document("web-0")
    await rig.post(f"/events/{event['id']}/approve?why=sessions+moved")
    await rig.post("/clock/advance", {"by": "5m"})
    timeline = part(await reader.see(f"/events/{event['id']}"), "timeline")
    told = [
        "Announced", "First seen by web-0", "Approved", "sessions moved", "Started",
        "it was approved", "Handed to the driver, attempt 1", "Completed",
    ]  # fmt: skip
    places = [timeline.index(each) for each in told]
    assert places == sorted(places)
    assert timeline.count("sessions moved") == 1


async def test_hooks_are_in_the_timeline_with_their_output(rig: Rig, reader: Reader) -> None:
    run = ["/bin/sh", "-c", "echo '<i>loud</i>'; exit 3"]
    hooks = {
        "before": [{"name": "alarm off", "run": run, "on_failure": "go-on"}],
        "after": [{"name": "alarm on", "run": ["/bin/sh", "-c", "echo $FAIRWARNING_OUTCOME"]}],
    }
    await rig.post("/fleet", {"vm": [{"name": "hooked", "hooks": hooks}]})
    event = await rig.schedule("hooked", duration="1m")
    await rig.post(f"/events/{event['id']}/approve")
    await rig.post("/clock/advance", {"by": "5m"})
    timeline = part(await reader.see(f"/events/{event['id']}"), "timeline")
    told = [
        "Handed to the driver", "Hook before the impact, 1: alarm off, failed", "exit code 3",
        "<i>loud</i>", "The driver has completed the impact",
        "Hook after the impact, 1: alarm on", "exit code 0", "completed", "Completed",
    ]  # fmt: skip
    place = 0
    for each in told:
        place = timeline.index(each, place)
    shown = (await rig.get(f"/events/{event['id']}"))["timeline"]
    outputs = [each["data"]["output"] for each in shown if each["kind"] == "HookFinished"]
    assert outputs == ["<i>loud</i>", "completed"]


async def test_the_page_shows_the_very_bytes_and_a_command_that_gets_them(
    rig: Rig, reader: Reader
) -> None:
    event = await rig.schedule("web-0")
    seen = await rig.document("web-0")
    documents = part(await reader.see(f"/events/{event['id']}"), "documents")
    bodies = re.findall(r"<code>(\{.*?\})</code>", documents)
    assert len(bodies) == 7
    assert json.loads(bodies[0]) == seen
    assert '"_web-0"' in bodies[-1]
    urls = re.findall(r"<code>curl -H Metadata:true '([^']+)'</code>", documents)
    async with http_client() as machine:
        got = [(await machine.get(url, headers={"Metadata": "true"})).text for url in urls]
    assert got == bodies


async def test_versions_that_do_not_know_the_type_say_so(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("workers_0", type="Preempt")
    documents = part(await reader.see(f"/events/{event['id']}"), "documents")
    assert documents.count("not shown: this version does not know the type Preempt") == 2


async def test_what_an_event_waits_for_is_named(rig: Rig, reader: Reader) -> None:
    first = await rig.schedule("web-0", duration="1h")
    second = await rig.schedule("web-1")
    await rig.post(f"/events/{first['id']}/approve")
    waits = part(await reader.see(f"/events/{second['id']}"), "waits")
    assert "If it is approved now, it still waits for these" in waits
    assert f'href="/events/{first["id"]}">Reboot of web-0' in waits


async def test_approving_says_before_what_will_happen_and_then_does_it(
    rig: Rig, reader: Reader
) -> None:
    body = {"type": "Freeze", "scope": "web", "updateDomain": 1, "duration": "1h"}
    event = await rig.post("/events", body, 201)
    page = f"/events/{event['id']}"
    asked = re.search(r'approve" class="action-form" data-ask="([^"]*)"', await reader.see(page))
    assert asked is not None
    for words in ("web-1, web-3 (2 affected)", "start at once, instead of", "no un-approve"):
        assert words in asked[1]
    assert "has started" in await reader.send(page, f"{page}/approve")
    assert (await rig.get(page))["phase"] == "started"
    assert "/approve" not in await reader.see(page)


async def test_approving_from_the_overview_leads_back_to_it(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("web-0", duration="1h")
    assert "has started" in await reader.send("/", f"/events/{event['id']}/approve")


async def test_cancelling_keeps_the_reason(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("web-0")
    page = f"/events/{event['id']}"
    asked = re.search(r'cancel" data-ask="([^"]*)"', await reader.see(page))
    assert asked is not None
    assert "will not happen" in asked[1]
    await reader.send(page, f"{page}/cancel", reason="not today")
    found = await rig.get(page)
    assert (found["phase"], found["outcome"]) == ("cancelled", "not today")


async def test_postponing_leads_to_the_event_that_takes_its_place(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("web-0")
    page = f"/events/{event['id']}"
    asked = re.search(r'postpone" data-ask="([^"]*)"', await reader.see(page))
    assert asked is not None
    assert "is cancelled, and another is announced" in asked[1]
    assert "Postponed" in await reader.send(page, f"{page}/postpone", notice="2h")
    other = (await rig.get(page))["replacedBy"]
    assert (await rig.get(f"/events/{other}"))["phase"] == "scheduled"
    assert f'href="/events/{other}"' in await reader.see(page)


@pytest.mark.parametrize(
    ("now_in", "drawn"), [("Asia/Tokyo", {}), ("America/New_York", {"zone": "Asia/Tokyo"})]
)
async def test_a_time_to_postpone_to_is_in_the_zone_in_which_the_page_was_drawn(
    rig: Rig, reader: Reader, now_in: str, drawn: dict[str, str]
) -> None:
    """The reader may have travelled since."""
    event = await rig.schedule("web-0")
    page = f"/events/{event['id']}"
    year = int(event["notBefore"][:4]) + 1
    reader.client.cookies.set("fairwarning-zone", now_in)
    # Less than a year ahead, whatever day it is: an event cannot be announced for later.
    at = f"{year}{event['notBefore'][4:8]}01T09:00"
    await reader.send(page, f"{page}/postpone", at=at, **drawn)
    other = await rig.get(f"/events/{(await rig.get(page))['replacedBy']}")
    assert other["notBefore"] == f"{at[:10]}T00:00:00.000Z"


@pytest.mark.parametrize("fields", [{}, {"notice": "2h", "at": "2030-01-01T10:00"}, {"at": "soon"}])
async def test_a_postponement_without_one_clear_time_changes_nothing(
    rig: Rig, reader: Reader, fields: dict[str, str]
) -> None:
    event = await rig.schedule("web-0")
    page = f"/events/{event['id']}"
    said = await reader.send(page, f"{page}/postpone", **fields)
    assert "date and time" in said
    assert (await rig.get(page))["phase"] == "scheduled"


@pytest.mark.parametrize("action", ["approve", "cancel", "postpone"])
async def test_a_deed_without_the_key_of_the_form_is_refused(
    rig: Rig, reader: Reader, action: str
) -> None:
    event = await rig.schedule("web-0")
    answer = await reader.client.post(f"/events/{event['id']}/{action}", data={"notice": "2h"})
    assert answer.status_code == 403
    found = await rig.get(f"/events/{event['id']}")
    assert (found["phase"], found["approvals"]) == ("scheduled", [])


async def test_a_name_that_is_markup_is_shown_and_not_obeyed(rig: Rig, reader: Reader) -> None:
    event = await rig.schedule("web-0", description="<script>alert(1)</script>")
    for page in ("/", f"/events/{event['id']}"):
        assert "<script>alert" not in (await reader.client.get(page)).text


async def test_an_unknown_event_is_a_page_that_says_so(reader: Reader) -> None:
    assert "nosuch" in (await reader.see("/events/nosuch", 404)).lower()


async def test_each_role_sees_the_buttons_that_it_may_use(tmp_path: Path) -> None:
    certificate, key, authority = make_certificate(tmp_path)
    deeds = {Role.VIEWER: [], Role.APPROVER: ["approve"],
             Role.OPERATOR: ["approve", "cancel", "postpone"]}  # fmt: skip
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        trust = ssl.create_default_context(cafile=str(authority))
        _, admin = await tokens.create("root", Role.ADMIN, None, by=ME, why="")
        async with httpx.AsyncClient(base_url=url, verify=trust, timeout=HANG_S) as client:
            made = await client.post(
                "/api/v1/events",
                json={"type": "Reboot", "targets": ["web-0"]},
                headers={"Authorization": f"Bearer {admin}"},
            )
            page = f"/events/{made.json()['id']}"
            for role, expected in deeds.items():
                _, secret = await tokens.create(role.word, role, None, by=ME, why="")
                client.cookies.clear()
                await client.post("/login", data={"token": secret})
                text = (await client.get(page)).text
                assert sorted(re.findall(rf'action="{page}/(\w+)"', text)) == expected, role
                overview = (await client.get("/")).text
                assert (f'action="{page}/approve"' in overview) == bool(expected), role
