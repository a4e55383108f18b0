"""A rehearsal in a browser: time, scenarios, faults, and what a handler made of them."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.operator_api.rig import Rig

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def play(page: Page, scenario: str, speed: str, **roles: str) -> None:
    await page.goto("/rehearse")
    await page.locator(f"#scenario-{scenario} > summary").click()
    card = page.locator(f"#scenario-{scenario}")
    await card.get_by_label("How fast").select_option(speed)
    for name, other in roles.items():
        await card.get_by_label(f"In the part of {name.replace('_', '-')}").fill(other)
    await card.get_by_role("button", name="Play it").click()


async def test_the_clock_is_moved_and_what_is_due_happens(rig: Rig, page: Page) -> None:
    event = await rig.schedule("db")
    await page.goto("/rehearse")
    await page.get_by_role("button", name="+15m").click()
    await expect(page.locator("#said")).to_contain_text("went on by 15m")
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "started"
    before = rig.clock.now()
    await page.get_by_label("Other").fill("2h")
    await page.get_by_role("button", name="Advance").click()
    await expect(page.locator("#said")).to_contain_text("went on by 2h")
    assert rig.clock.now() - before == 2 * 3_600_000


async def test_a_story_is_played_and_told(rig: Rig, page: Page) -> None:
    await rig.activate("web-1")
    await play(page, "neighbour", "At once")
    run = page.locator("#run")
    await expect(run).to_contain_text("Ended well")
    await expect(run).to_contain_text("web-1 is back.")
    await expect(run).to_contain_text("As expected: theirs to be completed")
    events = (await rig.get("/events"))["events"]
    assert [(each["resources"], each["phase"]) for each in events] == [(["web-1"], "completed")]


async def test_a_story_is_told_while_it_goes_on_and_can_be_stopped(rig: Rig, page: Page) -> None:
    await play(page, "neighbour", "10 seconds a second", web_1="db")
    run = page.locator("#run")
    await expect(run).to_contain_text("Playing")
    await expect(run).to_contain_text("Maintenance of web-1 is announced")
    await run.get_by_role("button", name="Stop").click()
    await expect(run).to_contain_text("Stopped")
    event = (await rig.get("/events"))["events"][0]
    assert (event["resources"], event["phase"]) == (["db"], "scheduled")


async def test_who_is_not_there_cannot_play(page: Page) -> None:
    await play(page, "neighbour", "At once", web_1="ghost")
    await expect(page.locator("#run")).to_contain_text("Failed")
    await expect(page.locator("#run .said.failed")).to_contain_text("ghost")


async def test_a_fault_is_set_strikes_and_is_cleared(rig: Rig, page: Page) -> None:
    await page.goto("/rehearse")
    await page.get_by_text("Set a fault", exact=True).click()
    await page.get_by_label("What goes wrong").select_option("unknown-type")
    await page.get_by_label("Instances").fill("web-0 web-1")
    await page.get_by_label("How often").fill("3")
    await page.get_by_role("button", name="Set it").click()
    faults = page.locator("#faults")
    await expect(faults).to_contain_text("web-0, web-1")
    await expect(faults).to_contain_text("0 of 3 struck")
    assert len((await rig.document("web-0"))["Events"]) == 1
    await page.reload()
    await expect(faults).to_contain_text("1 of 3 struck")
    await faults.get_by_role("button", name="Clear").click()
    await expect(faults).to_contain_text("None is set.")
    assert (await rig.document("web-0"))["Events"] == []


async def test_what_a_handler_did_is_seen_as_it_happens(rig: Rig, page: Page) -> None:
    event = await rig.schedule("db")
    await page.goto("/rehearse")
    await page.get_by_role("button", name="Watch for 10 minutes").click()
    await rig.document("db")
    rows = page.locator("#requests tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text(re.compile("db.*polled"))
    await rig.approve("db", event["id"])
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text(re.compile("db.*approved"))
    await rows.first.get_by_role("link", name=event["id"][:8]).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("db")


async def test_watching_ends_when_nobody_wants_it(rig: Rig, page: Page) -> None:
    await page.goto("/rehearse")
    await page.get_by_role("button", name="Watch for 10 minutes").click()
    await page.get_by_role("button", name="Stop watching").click()
    await expect(page.locator("#requests")).to_contain_text("Requests are not noted now")
    await rig.document("db")
    assert (await rig.get("/requests"))["requests"] == []
