"""The fleet in a browser: who is where, who asks, and what happens to whom."""

import pytest
from playwright.async_api import Page, expect

from tests.operator_api.rig import Rig

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_row_of_a_resource_shows_what_happens_to_it_as_it_happens(
    rig: Rig, page: Page
) -> None:
    await page.goto("/fleet")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="web", exact=True))
    await expect(row).to_contain_text("nothing")
    event = await rig.schedule("web-0")
    await expect(row.locator(".cell.scheduled")).to_have_text("1 scheduled")
    await rig.post(f"/events/{event['id']}/approve")
    await expect(row.locator(".cell.started")).to_have_text("1 under way")


async def test_searching_needs_no_button_and_can_be_sent_to_a_colleague(page: Page) -> None:
    await page.goto("/fleet")
    rows = page.locator("#resources tbody tr")
    await expect(rows).to_have_count(3)
    await page.get_by_label("Find a resource or an instance").press_sequentially("worker")
    await expect(rows).to_have_count(1)
    await expect(page.get_by_role("link", name="workers", exact=True)).to_be_visible()
    assert page.url.endswith("search=worker")
    await page.reload()
    await expect(rows).to_have_count(1)


async def test_a_search_that_fits_nobody_says_so(page: Page) -> None:
    await page.goto("/fleet?search=nobody")
    await expect(page.get_by_text("has “nobody” in its name")).to_be_visible()
    await page.get_by_role("link", name="Show all").click()
    await expect(page.locator("#resources tbody tr")).to_have_count(3)


async def test_who_polls_with_what_and_who_never_asked(rig: Rig, page: Page) -> None:
    await page.goto("/fleet")
    await page.get_by_role("link", name="web", exact=True).click()
    await expect(page.get_by_text("4 of 4 have not asked")).to_be_visible()
    await rig.activate("web-1")
    rig.node.engine.views.sample(rig.clock.now() / 1000, 60)
    await page.reload()
    await expect(page.get_by_text("3 of 4 have not asked")).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="web-1"))
    await expect(row).to_contain_text("just now")
    await expect(row).to_contain_text("python-httpx")


async def test_an_instance_tells_its_history_and_can_be_restarted(rig: Rig, page: Page) -> None:
    await rig.activate("web-1")
    await page.goto("/fleet")
    await page.get_by_role("link", name="web", exact=True).click()
    await page.get_by_role("link", name="web-1", exact=True).click()
    await expect(page.get_by_role("heading", name="web-1", level=1)).to_be_visible()
    await expect(page.get_by_text("No event has named this instance yet.")).to_be_visible()
    await page.get_by_role("button", name="Restart").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Restart web-1?")
    await dialog.get_by_role("button", name="Restart").click()
    await expect(page.locator("#said")).to_contain_text("Restart of web-1 is announced")
    await page.get_by_role("link", name="web-1", exact=True).click()
    await expect(page.locator("#pending")).to_contain_text("Reboot")
