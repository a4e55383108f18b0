"""For every reader: light and dark, by keyboard, on a phone, in the own time zone."""

import pytest
from playwright.async_api import Page, expect

from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def ground(page: Page) -> str:
    return str(await page.evaluate("getComputedStyle(document.body).backgroundColor"))


async def test_the_theme_that_is_chosen_is_kept(page: Page) -> None:
    before = await ground(page)
    await page.get_by_label("Theme").select_option("dark")
    dark = await ground(page)
    assert dark != before
    await page.goto("/settings")
    assert await ground(page) == dark
    await expect(page.get_by_label("Theme")).to_have_value("dark")
    await page.get_by_label("Theme").select_option("auto")
    assert await ground(page) == before


async def test_a_dark_system_has_dark_pages(look: Look) -> None:
    light, dark = await look(color_scheme="light"), await look(color_scheme="dark")
    assert await ground(light) != await ground(dark)


async def test_times_are_the_readers_with_utc_on_hover(rig: Rig, look: Look) -> None:
    event = await rig.schedule("db")
    page = await look(f"/events/{event['id']}", timezone_id="Asia/Kolkata")
    shown = page.locator(f'time[datetime^="{event["notBefore"][:19]}"][data-when="both"]').first
    hours, minutes = map(int, event["notBefore"][11:16].split(":"))
    local = (hours * 60 + minutes + 330) % 1440
    await expect(shown).to_contain_text(f"{local // 60:02}:{local % 60:02}")
    assert event["notBefore"][11:19] + " UTC" in (await shown.get_attribute("title") or "")


async def test_a_deed_needs_no_mouse(rig: Rig, page: Page) -> None:
    event = await rig.schedule("db")
    await page.goto(f"/events/{event['id']}")
    button = page.get_by_role("button", name="Approve", exact=True)
    await tab_to(page, "Approve")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(button).to_be_focused()
    assert (await rig.get(f"/events/{event['id']}"))["approvals"] == []
    await page.keyboard.press("Enter")
    await tab_to(page, "Approve")
    await page.keyboard.press("Enter")
    await expect(page.locator("#said")).to_contain_text("Approved")
    assert len((await rig.get(f"/events/{event['id']}"))["approvals"]) == 1


async def tab_to(page: Page, label: str) -> None:
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.textContent.trim()") == label:
            return
    raise AssertionError(f"nobody comes to {label!r} by Tab")


async def test_the_first_stop_leads_past_the_menu(page: Page) -> None:
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#content")).to_be_focused()


async def test_on_a_phone_the_menu_is_folded(look: Look) -> None:
    page = await look("/", width=390, height=800)
    fleet = page.get_by_role("navigation").get_by_role("link", name="Fleet")
    await expect(fleet).to_be_hidden()
    await page.get_by_text("Menu", exact=True).click()
    await fleet.click()
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
