"""Overview and events in a real browser: alive, in the reader's zone, and asking first."""

import re

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look, new_reader

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_is_announced_appears_on_an_open_overview(page: Page, rig: Rig) -> None:
    await expect(page.get_by_role("heading", name="Nothing has been announced yet")).to_be_visible()
    event = await rig.schedule("web-0", notice="20m")
    row = page.get_by_role("row").filter(has=page.locator(f'a[href="/events/{event["id"]}"]'))
    await expect(row.first).to_contain_text("20 min")
    await expect(page.get_by_role("group", name="Timeline of 1 events in 1 lanes")).to_be_visible()
    await expect(page.get_by_text("Nothing has been announced yet")).to_have_count(0)


async def test_approving_asks_first_and_starts_the_event(page: Page, rig: Rig) -> None:
    event = await rig.schedule("web-0", duration="1h")
    await page.locator("#pending").get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name="Approve")
    await expect(dialog).to_contain_text("Reboot of web-0 (1 affected)")
    await expect(dialog).to_contain_text("There is no un-approve")
    await dialog.get_by_role("button", name="Not now").click()
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "scheduled"
    await page.locator("#pending").get_by_role("button", name="Approve").click()
    await dialog.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("status")).to_contain_text("has started")
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "started"


async def test_an_answer_counts_though_the_page_changed_during_the_question(
    page: Page, rig: Rig
) -> None:
    event = await rig.schedule("web-0", duration="1h")
    await page.locator("#pending").get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name="Approve")
    await expect(dialog).to_be_visible()
    await rig.schedule("db")
    await expect(page.locator("#figures .figure").first).to_have_text("2")
    await dialog.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("status")).to_contain_text("has started")
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "started"


async def test_a_change_is_shown_though_the_page_was_not_answered_at_first(
    chromium: Browser, rig: Rig
) -> None:
    context = await new_reader(chromium, base_url=rig.node.control_url)
    page = await context.new_page()
    await page.goto("/")
    refused = 0

    async def refuse_some(route: Route) -> None:
        nonlocal refused
        if "x-live" in route.request.headers and refused < 4:
            refused += 1
            await route.fulfill(status=503)
        else:
            await route.continue_()

    await page.route("**/*", refuse_some)
    event = await rig.schedule("web-0")
    await expect(page.locator(f'#pending a[href="/events/{event["id"]}"]')).to_be_visible()
    assert refused == 4
    await context.close()


async def test_the_timeline_and_the_questions_are_in_the_readers_zone(look: Look, rig: Rig) -> None:
    await rig.schedule("web-0", notice="2h")
    page = await look("/")
    await expect(page.locator("#timeline")).to_contain_text("In Europe/Berlin time")
    await page.locator("#pending").get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("dialog")).to_contain_text(re.compile(r"\d\d:\d\d:\d\d CES?T"))


async def test_a_bar_says_to_a_screen_reader_what_it_draws(look: Look, rig: Rig) -> None:
    await rig.schedule("web-0", notice="2h")
    page = await look("/")
    await expect(page.locator("#timeline")).to_contain_text("In Europe/Berlin time")
    name = re.compile(r"^Reboot: web-0, Scheduled, not before .* CES?T$")
    await expect(page.get_by_role("link", name=name)).to_be_visible()


async def test_a_bar_leads_to_its_event_by_mouse_and_by_keyboard(look: Look, rig: Rig) -> None:
    event = await rig.schedule("web-0", notice="2h")
    page = await look("/")
    await page.locator(f'svg a[href="/events/{event["id"]}"] rect').last.click()
    await page.wait_for_url(f"**/events/{event['id']}")
    await page.goto("/")
    await page.locator(f'svg a[href="/events/{event["id"]}"]').press("Enter")
    await page.wait_for_url(f"**/events/{event['id']}")


async def test_the_timeline_zooms_and_the_zoom_can_be_linked(look: Look, rig: Rig) -> None:
    await rig.schedule("web-0", notice="15m")
    page = await look("/")
    notice = page.locator("svg .notice")
    await expect(page.get_by_role("link", name="Hour")).to_have_attribute("aria-current", "true")
    wide = await notice.bounding_box()
    await page.get_by_role("link", name="Week").click()
    await page.wait_for_url("**/?zoom=week#timeline")
    narrow = await notice.bounding_box()
    assert wide is not None
    assert narrow is not None
    assert wide["width"] > 10 * narrow["width"]
    await page.go_back()
    await expect(page.get_by_role("link", name="Hour")).to_have_attribute("aria-current", "true")


async def test_another_zoom_loads_no_other_page(look: Look, rig: Rig) -> None:
    await rig.schedule("web-0", notice="15m")
    page = await look("/")
    await page.evaluate("document.body.dataset.same = 'yes'")
    await page.locator("#zoom-week").press("Enter")
    await expect(page.locator("#zoom-week")).to_have_attribute("aria-current", "true")
    await expect(page.locator("#zoom-week")).to_be_focused()
    await expect(page.locator("body")).to_have_attribute("data-same", "yes")
    await page.reload()
    await expect(page.locator("#zoom-week")).to_have_attribute("aria-current", "true")


async def test_an_open_event_tells_its_story_as_it_happens(look: Look, rig: Rig) -> None:
    event = await rig.schedule("web-0", duration="1m")
    page = await look(f"/events/{event['id']}")
    timeline = page.locator("#timeline li strong")
    await expect(timeline).to_have_text(["Announced", re.compile("^Starts by itself")])
    await rig.document("web-0")
    await expect(timeline.nth(1)).to_have_text("First seen by web-0")
    await rig.post(f"/events/{event['id']}/approve")
    await expect(page.locator("#heading")).to_contain_text("Started")
    await expect(page.get_by_role("heading", name="Decide")).to_have_count(0)
    await rig.post("/clock/advance", {"by": "5m"})
    await expect(timeline.last).to_have_text("Completed")
    await expect(page.locator("#documents")).to_contain_text("no instance sees it any more")


async def test_the_countdown_follows_the_servers_clock(look: Look, rig: Rig) -> None:
    event = await rig.schedule("web-0", notice="30m")
    page = await look(f"/events/{event['id']}")
    await expect(page.locator("#countdown time")).to_have_text("30 min")
    await rig.post("/clock/advance", {"by": "10m"})
    await expect(page.locator("#countdown time")).to_have_text("20 min")


async def test_what_is_typed_survives_a_change_elsewhere(look: Look, rig: Rig) -> None:
    event = await rig.schedule("web-0")
    page = await look(f"/events/{event['id']}")
    await page.get_by_label("Reason").fill("not today")
    await page.get_by_role("heading", level=1).click()
    await rig.document("web-0")
    await expect(page.locator("#timeline")).to_contain_text("First seen by web-0")
    await expect(page.get_by_label("Reason")).to_have_value("not today")


async def test_what_is_typed_survives_when_its_own_form_is_drawn_again(
    look: Look, rig: Rig
) -> None:
    event = await rig.schedule("web-0")
    page = await look(f"/events/{event['id']}")
    question = await page.locator("#decide form").first.get_attribute("data-ask")
    await page.get_by_label("Reason").fill("not today")
    await page.get_by_role("heading", level=1).click()
    # The questions of the forms name times, so another time zone changes the forms.
    await page.evaluate("document.cookie = 'fairwarning-zone=Asia/Tokyo; path=/'")
    await rig.document("web-0")
    await expect(page.locator("#decide form").first).not_to_have_attribute(
        "data-ask", question or ""
    )
    await expect(page.get_by_label("Reason")).to_have_value("not today")


async def test_cancelling_and_postponing_say_what_will_happen(look: Look, rig: Rig) -> None:
    event = await rig.schedule("web-0")
    page = await look(f"/events/{event['id']}")
    dialog = page.get_by_role("dialog")
    await page.get_by_label("Not before, from now").fill("2h")
    await page.get_by_role("button", name="Postpone").click()
    await expect(dialog).to_contain_text("is cancelled, and another is announced")
    await dialog.get_by_role("button", name="Postpone").click()
    await expect(page.get_by_role("status")).to_contain_text("this one takes its place")
    await expect(page.locator("#countdown time")).to_have_text("2 h")
    await page.get_by_label("Reason").fill("never mind")
    await page.get_by_role("button", name="Cancel event").click()
    await expect(dialog).to_contain_text("will not happen")
    await dialog.get_by_role("button", name="Cancel event").click()
    await expect(page.locator("#heading")).to_contain_text("Cancelled")
    await expect(page.locator("#facts")).to_contain_text("never mind")


async def test_the_list_is_filtered_while_one_types(look: Look, rig: Rig) -> None:
    await rig.schedule("web-0")
    await rig.schedule("db", type="Freeze")
    page = await look("/events")
    rows = page.locator("#list tbody tr")
    await expect(rows).to_have_count(2)
    await page.get_by_label("Instance").press_sequentially("db")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("Freeze")
    await expect(page).to_have_url(re.compile("instance=db"))


@pytest.mark.parametrize("width", [390, 1280, 1680])
async def test_nothing_is_wider_than_the_screen(look: Look, rig: Rig, width: int) -> None:
    await rig.schedule("workers_0", notice="2h", description="x" * 200)
    event = await rig.schedule("web-0", notice="3d", description="New firmware for the host.")
    for path in ("/", "/events", f"/events/{event['id']}"):
        page = await look(path, width=width)
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, path
