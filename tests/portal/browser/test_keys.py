"""Fast hands: the keys that every page knows, and choosing several events."""

import pytest
from playwright.async_api import expect

from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_slash_searches_and_goes_to_the_instance(look: Look) -> None:
    page = await look("/history")
    await page.keyboard.press("/")
    await page.keyboard.type("web-3")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**#instance-web-3")
    await expect(page.locator("tr.marked th")).to_have_text("web-3")
    await expect(page.locator("tr.marked")).to_be_in_viewport()


async def test_g_and_a_letter_goes_to_a_page_but_not_while_one_writes(look: Look) -> None:
    page = await look("/")
    await page.keyboard.press("g")
    await page.keyboard.press("f")
    await page.wait_for_url("**/fleet")
    await page.locator("#search").press_sequentially("gh")
    await expect(page.locator("#search")).to_have_value("gh")
    assert "/fleet" in page.url


async def test_the_list_of_keys_opens_and_closes(look: Look) -> None:
    page = await look("/")
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_be_visible()
    await expect(dialog.locator("dt")).to_have_count(11)
    await expect(dialog).to_contain_text("g f")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await page.keyboard.press("?")
    await expect(dialog.locator("dt")).to_have_count(11)


async def test_several_events_are_chosen_and_approved_while_the_page_lives(
    look: Look, rig: Rig
) -> None:
    first, second = await rig.schedule("web-0"), await rig.schedule("db")
    page = await look("/")
    for each in (first, second):
        await page.get_by_label(f"Choose {each['id'][:8]}").check()
    third = await rig.schedule("workers_0")
    await expect(page.get_by_label(f"Choose {third['id'][:8]}")).to_be_visible()
    await page.get_by_role("button", name="Approve the chosen ones").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Approve 2 events?")
    await page.get_by_role("button", name="Approve 2").click()
    await expect(page.locator("#said")).to_contain_text("2 events are approved.")
    await expect(page.locator(f'#pending a[href="/events/{third["id"]}"]')).to_be_visible()
    # One event alone has its own button and need not be chosen.
    await expect(page.get_by_role("checkbox")).to_have_count(0)


async def test_enter_in_a_row_asks_for_the_chosen_ones_and_not_for_one_event(
    look: Look, rig: Rig
) -> None:
    first, second = await rig.schedule("web-0"), await rig.schedule("db")
    page = await look("/", java_script_enabled=False)
    for each in (first, second):
        await page.get_by_label(f"Choose {each['id'][:8]}").check()
    await page.get_by_label(f"Choose {second['id'][:8]}").press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Approve 2 events?")
    for each in (first, second):
        assert (await rig.get(f"/events/{each['id']}"))["approvals"] == []
